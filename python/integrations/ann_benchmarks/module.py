"""rabitq-ssd in ann-benchmarks."""

import os
import shutil
import tempfile

import rabitq_ssd

from ..base.module import BaseANN


class RabitqSsd(BaseANN):
    """Arguments are those of `rabitq_ssd.build`; each query group is [nprobe, alpha]."""

    def __init__(self, metric, build):
        known = {"euclidean": "l2", "angular": "cosine"}
        if metric not in known:
            raise NotImplementedError(f"rabitq-ssd has no metric {metric}")
        self._metric = known[metric]
        self._build = dict(build)
        self._folder = None
        self._index = None
        self.name = f"rabitq-ssd({self._build})"

    def fit(self, X):
        self._folder = tempfile.mkdtemp(prefix="rabitq-ssd.")
        path = os.path.join(self._folder, "index")
        self._index = rabitq_ssd.build(X, path, metric=self._metric, **self._build)

    def set_query_arguments(self, nprobe, alpha=0.4):
        self._search = {"nprobe": nprobe, "alpha": alpha}
        self.name = f"rabitq-ssd({self._build}, nprobe={nprobe}, alpha={alpha})"

    def query(self, q, n):
        return self._index.search(q, k=n, **self._search).ids

    def batch_query(self, X, n):
        self.res = self._index.search(X, k=n, **self._search).ids

    def get_memory_usage(self):
        """Kilobytes that the index holds in RAM; before it is built, those of the process."""
        if self._index is None:
            return super().get_memory_usage()
        return self._index.resident_bytes / 1024

    def done(self):
        if self._index is not None:
            self._index.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
