"""The wrappers for benchmark harnesses, called as their harness calls them."""

from __future__ import annotations

import copy
import importlib
import os
import pickle
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rabitq_ssd
from support import DIM, exact

INTEGRATIONS = Path(__file__).parents[1] / "integrations"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Adds modules that only the harness has, and forgets them and what imported them."""
    before = set(sys.modules)

    def add(name: str, **members: Any) -> None:
        for parent in range(name.count(".") + 1):
            part = ".".join(name.split(".")[: parent + 1])
            sys.modules.setdefault(part, types.ModuleType(part))
        vars(sys.modules[name]).update(members)

    yield add
    for name in set(sys.modules) - before:
        del sys.modules[name]


class BaseANN:
    """What both harnesses call, as their own base classes have it."""

    res: Any = None
    name: str = ""

    def done(self) -> None: ...

    def get_memory_usage(self) -> float | None:
        return None

    def get_batch_results(self) -> Any:
        return self.res

    def get_results(self) -> Any:
        return self.res

    def get_additional(self) -> dict[str, Any]:
        return {}

    def __str__(self) -> str:
        return self.name


@pytest.mark.parametrize("metric", ["euclidean", "angular"])
def test_ann_benchmarks(
    metric: str, modules: Any, rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules("ann_benchmarks.algorithms.base.module", BaseANN=BaseANN)
    sys.modules["ann_benchmarks.algorithms"].__path__ = [str(tmp_path)]
    shutil.copytree(INTEGRATIONS / "ann_benchmarks", tmp_path / "rabitq_ssd")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    module = importlib.import_module("ann_benchmarks.algorithms.rabitq_ssd.module")

    algorithm = module.RabitqSsd(metric, {"record": "f32"})
    assert algorithm.get_memory_usage() is None
    algorithm.fit(rows)
    algorithm.set_query_arguments(99, 1.0)
    assert "nprobe=99" in str(algorithm)
    queries = rows[:20] + 0.01
    algorithm.batch_query(queries, 5)
    each = [algorithm.query(query, 5) for query in queries]
    assert np.array_equal(algorithm.get_batch_results(), each)
    base, asked = rows, queries
    if metric == "angular":
        base, asked = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (rows, queries))
    assert np.array_equal(each, exact(base, asked, 5))
    assert algorithm.get_memory_usage() > 0 and algorithm.get_additional() == {}
    algorithm.done()
    assert os.listdir(tmp_path) == ["rabitq_ssd"]
    with pytest.raises(NotImplementedError):
        module.RabitqSsd("hamming", {})


@pytest.mark.parametrize("name", ["base.fbin", "base.fbin.crop_nb_2000"])
def test_big_ann_benchmarks(name: str, modules: Any, rows: Any, tmp_path: Path) -> None:
    rabitq_ssd.convert(rows, tmp_path / "base.fbin")

    class Dataset:
        nb, d, dtype = 2000, DIM, "float32"

        def get_dataset_fn(self) -> str:
            return str(tmp_path / name)

        def get_dataset_iterator(self, bs: int) -> Iterator[Any]:
            yield from (rows[start : start + 700] for start in range(0, 1400, 700))
            yield rows[1400:2000]

    modules("benchmark.algorithms.base", BaseANN=BaseANN)
    modules("benchmark.datasets", DATASETS={"random-xs": Dataset})
    modules("harness")
    sys.modules["harness"].__path__ = [str(INTEGRATIONS / "big_ann_benchmarks")]
    module = importlib.import_module("harness.rabitq_ssd_ann")

    build = {"record": "f32", "folder": str(tmp_path / "indices")}
    algorithm = module.RabitqSsd("euclidean", build)
    assert algorithm.load_index("random-xs") is False
    algorithm.fit("random-xs")
    again = module.RabitqSsd("euclidean", build)
    assert again.load_index("random-xs") is True
    for one in (algorithm, again):
        one.set_query_arguments({"nprobe": 99, "alpha": 1.0})
        one.query(rows[:20] + 0.01, 5)
        assert np.array_equal(one.get_results(), exact(rows[:2000], rows[:20] + 0.01, 5))
    folder, prefix, files = algorithm.index_files_to_store("random-xs")
    assert all(os.path.exists(os.path.join(folder, prefix + file)) for file in files)
    assert algorithm.track() == "T2" and "nprobe=99" in str(algorithm)


def test_vectordb_bench(rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = pytest.importorskip("vectordb_bench.backend.clients.api")
    monkeypatch.syspath_prepend(str(INTEGRATIONS / "vectordb_bench"))
    client = importlib.import_module("rabitq_ssd_client.client")
    config = importlib.import_module("rabitq_ssd_client.config")

    where = config.RabitqSsdConfig(path=str(tmp_path)).to_dict()
    case = config.RabitqSsdIndexConfig(metric_type=api.MetricType.COSINE, record="f32", nprobe=99)
    database = client.RabitqSsd(DIM, where, case, collection_name="c", drop_old=True)
    assert isinstance(database, api.VectorDB) and not database.need_normalize_cosine()
    with database.init():
        for start in range(0, 3000, 1000):
            ids = list(range(start + 7, start + 1007))
            assert database.insert_embeddings(rows[start : start + 1000].tolist(), ids) == (
                1000,
                None,
            )
        count, error = database.insert_embeddings(rows[:2].tolist(), [1])
        assert count == 0 and isinstance(error, ValueError)
    other = pickle.loads(pickle.dumps(database))
    with other.init():
        other.optimize(3000)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    with copy.deepcopy(database).init():
        pass
    with database.init():
        for query, nearest in zip(rows[:9], exact(unit, unit[:9], 5)):
            assert database.search_embedding(query.tolist(), k=5) == (nearest + 7).tolist()
        assert len(database.search_embedding(rows[0].tolist(), k=4000)) == 3000
        count, error = database.insert_embeddings(rows[:1].tolist(), [1])
        assert count == 0 and isinstance(error, RuntimeError)
    assert os.listdir(tmp_path / "c") == ["index"]
    with pytest.raises(ValueError, match="HAMMING"):
        config.RabitqSsdIndexConfig(metric_type=api.MetricType.HAMMING).index_param()
