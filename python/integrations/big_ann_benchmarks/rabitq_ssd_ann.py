"""rabitq-ssd in big-ann-benchmarks."""

import os

import rabitq_ssd
from benchmark.algorithms.base import BaseANN
from benchmark.datasets import DATASETS

#: Vector files of the harness that are read where they lie.
KNOWN = (".fbin", ".u8bin", ".i8bin")
BATCH = 500_000


class RabitqSsd(BaseANN):
    """`build` has arguments of `rabitq_ssd.build`; query arguments are those of `Index.search`."""

    def __init__(self, metric, build):
        known = {"euclidean": "l2", "ip": "ip", "angular": "cosine"}
        if metric not in known:
            raise NotImplementedError(f"rabitq-ssd has no metric {metric}")
        self._build = dict(build)
        self._folder = self._build.pop("folder", "data/indices/rabitq-ssd")
        self._metric = known[metric]
        self._index = None
        self._search = {}
        self.name = self._named()

    def track(self):
        return "T2"

    def fit(self, dataset):
        ds = DATASETS[dataset]()
        file = ds.get_dataset_fn()
        if file.endswith(KNOWN):
            rows = {"x": file, "rows": ds.nb}
        else:
            rows = {"x": ds.get_dataset_iterator(bs=BATCH)}
        os.makedirs(self._folder, exist_ok=True)
        self._index = rabitq_ssd.build(
            dir=self._path(dataset), metric=self._metric, overwrite=True, **rows, **self._build
        )

    def load_index(self, dataset):
        if not os.path.isdir(self._path(dataset)):
            return False
        self._index = rabitq_ssd.open(self._path(dataset))
        return True

    def index_files_to_store(self, dataset):
        path = self._path(dataset)
        return [path, "", sorted(os.listdir(path))]

    def set_query_arguments(self, query_args):
        self._search = dict(query_args)
        self.name = self._named()

    def query(self, X, k):
        self.res = self._index.search(X, k=k, **self._search).ids

    def get_additional(self):
        return {"resident_bytes": self._index.resident_bytes}

    def _path(self, dataset):
        options = "_".join(f"{name}={value}" for name, value in sorted(self._build.items()))
        return os.path.join(self._folder, f"{dataset}.{self._metric}.{options or 'default'}.index")

    def _named(self):
        options = {**self._build, **self._search}
        return "rabitq-ssd" + "".join(f",{name}={value}" for name, value in options.items())
