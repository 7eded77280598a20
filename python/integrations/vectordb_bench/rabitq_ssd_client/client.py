"""rabitq-ssd as a database of VectorDBBench.

An index is written once: rows are kept in a file until `optimize` builds the index of them all,
which the benchmark counts as loading.

    insert_embeddings ─▶ rows.fbin, ids.u64bin ─▶ optimize ─▶ index ─▶ search_embedding
"""

import os
import shutil
import struct
from contextlib import contextmanager

import numpy as np
import rabitq_ssd
from vectordb_bench.backend.clients.api import VectorDB

from .config import RabitqSsdIndexConfig


class RabitqSsd(VectorDB):
    """The object travels between processes by pickle; what it keeps is on disk."""

    name = "RabitqSsd"
    thread_safe = True

    def __init__(
        self,
        dim: int,
        db_config: dict,
        db_case_config: RabitqSsdIndexConfig,
        collection_name: str = "vector_bench_test",
        drop_old: bool = False,
        **kwargs,
    ) -> None:
        self._dim = dim
        self._build = db_case_config.index_param()
        self._search = db_case_config.search_param()
        self._folder = os.path.join(db_config["path"], collection_name or "vector_bench_test")
        self._index = None
        if drop_old:
            shutil.rmtree(self._folder, ignore_errors=True)
        os.makedirs(self._folder, exist_ok=True)

    @contextmanager
    def init(self):
        if os.path.isdir(self._path("index")):
            self._index = rabitq_ssd.open(self._path("index"))
        try:
            yield
        finally:
            if self._index is not None:
                self._index.close()
            self._index = None

    def need_normalize_cosine(self) -> bool:
        return False

    def insert_embeddings(
        self,
        embeddings: list[list[float]],
        metadata: list[int],
        labels_data: list[str] | None = None,
        **kwargs,
    ) -> tuple[int, Exception | None]:
        try:
            if os.path.isdir(self._path("index")):
                msg = "an index of rabitq-ssd is written once: there are no inserts after optimize"
                raise RuntimeError(msg)
            rows = np.ascontiguousarray(embeddings, dtype="<f4").reshape(-1, self._dim)
            ids = np.asarray(metadata, dtype="<u8")
            if len(rows) != len(ids):
                msg = f"{len(rows)} rows need as many ids, found {len(ids)}"
                raise ValueError(msg)
            self._append("rows.fbin", rows, self._dim)
            self._append("ids.u64bin", ids, 1)
        except (OSError, RuntimeError, ValueError) as error:
            return 0, error
        return len(rows), None

    def optimize(self, data_size: int | None = None) -> None:
        if self._index is None:
            self._index = rabitq_ssd.build(
                self._path("rows.fbin"),
                self._path("index"),
                ids=self._path("ids.u64bin"),
                **self._build,
            )
            os.unlink(self._path("rows.fbin"))
            os.unlink(self._path("ids.u64bin"))

    def search_embedding(self, query: list[float], k: int = 100, **kwargs) -> list[int]:
        found = self._index.search(query, k=k, **self._search).ids
        return found[found >= 0].tolist()

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _append(self, name: str, values: np.ndarray, width: int) -> None:
        """Adds rows to a file that begins with the number of its rows and their width."""
        with open(self._path(name), "ab") as file:
            if file.tell() == 0:
                file.write(struct.pack("<II", 0, width))
            file.write(values.tobytes())
            size = file.tell()
        with open(self._path(name), "r+b") as file:
            file.write(struct.pack("<I", (size - 8) // (width * values.itemsize)))
