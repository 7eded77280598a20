"""The shim with the methods of faiss."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rabitq_ssd
from rabitq_ssd import faiss
from support import DIM, exact


def test_a_program_written_for_faiss_runs(rows: Any, tmp_path: Path) -> None:
    index = faiss.IndexRaBitQSSD(DIM, nlist=8, record="f32")
    index.train(rows)
    assert index.is_trained and index.ntotal == 0 and index.nlist == 8
    for start in range(0, 3000, 1000):
        index.add(rows[start : start + 1000])
    assert (index.d, index.ntotal, index.metric_type) == (DIM, 3000, faiss.METRIC_L2)
    index.nprobe = 8
    distances, ids = index.search(rows[:50] + 0.01, 5)
    assert (distances.shape, distances.dtype, ids.dtype) == ((50, 5), np.float32, np.int64)
    assert np.array_equal(ids, exact(rows, rows[:50] + 0.01, 5))
    faiss.write_index(index, tmp_path / "a")
    again = faiss.read_index(tmp_path / "a")
    again.nprobe = 8
    assert np.array_equal(again.search(rows[:50] + 0.01, 5)[1], ids)
    assert os.listdir(tmp_path) == ["a"]


def test_inner_products_descend(rows: Any) -> None:
    x = rows.copy()
    faiss.normalize_L2(x)
    index = faiss.IndexRaBitQSSD(DIM, metric=faiss.METRIC_INNER_PRODUCT, record="f32")
    index.add(x)
    distances, ids = index.search(x[:9], 3000)
    assert (ids[:, 0] == np.arange(9)).all() and np.allclose(distances[:, 0], 1, atol=1e-5)
    assert (np.diff(distances, axis=1) <= 0).all()


def test_rows_added_after_a_search_are_found_by_the_next(rows: Any, tmp_path: Path) -> None:
    for path in (None, tmp_path / "a"):
        index = faiss.IndexRaBitQSSD(DIM, path=path)
        index.add(rows[:500])
        assert index.search(rows[700:701], 1)[1][0, 0] != 700
        index.add(rows[500:1000])
        assert index.ntotal == 1000 and index.search(rows[700:701], 1)[1].tolist() == [[700]]
    assert rabitq_ssd.open(tmp_path / "a").n == 1000
    index.reset()
    assert index.ntotal == 0 and not (tmp_path / "a").exists()


def test_ids_may_be_given_and_mixed_with_row_numbers(rows: Any) -> None:
    index = faiss.IndexRaBitQSSD(DIM)
    index.add(rows[:100])
    index.add_with_ids(rows[100:200], np.arange(100) + 10**12)
    index.add(rows[200:300])
    found = index.search(rows[[5, 105, 205]], 1)[1].ravel()
    assert found.tolist() == [5, 10**12 + 5, 205]


def test_parameters_of_one_search_go_before_those_of_the_index(rows: Any) -> None:
    index = faiss.IndexRaBitQSSD(DIM, nlist=16, record="f32")
    index.add(rows)
    index.nprobe = 1
    every = faiss.SearchParametersIVF(nprobe=16)
    ids = index.search(rows[:50] + 0.01, 5, params=every)[1]
    assert np.array_equal(ids, exact(rows, rows[:50] + 0.01, 5))


def test_eight_threads_may_be_the_first_to_search(rows: Any) -> None:
    index = faiss.IndexRaBitQSSD(DIM)
    index.add(rows)
    with ThreadPoolExecutor(8) as pool:
        for _, found in pool.map(lambda _: index.search(rows[:20], 1), range(8)):
            assert found.ravel().tolist() == list(range(20))


def test_temporary_files_go_with_the_index(rows: Any, tmp_path: Path) -> None:
    index = faiss.IndexRaBitQSSD(DIM, path=tmp_path / "a")
    index.add(rows)
    index.search(rows[:1], 1)
    assert len(os.listdir(tmp_path)) == 2
    del index
    assert os.listdir(tmp_path) == ["a"]


def test_wrong_calls_say_what_is_wrong(rows: Any, tmp_path: Path) -> None:
    index = faiss.IndexRaBitQSSD(DIM)
    with pytest.raises(RuntimeError, match="add first"):
        index.search(rows[:1], 1)
    with pytest.raises(ValueError, match="shape"):
        index.add(rows[:, :5])
    with pytest.raises(ValueError, match="as many ids"):
        index.add_with_ids(rows[:5], [1])
    with pytest.raises(ValueError, match="negative"):
        index.add_with_ids(rows[:1], [-1])
    with pytest.raises(ValueError, match="too large"):
        index.add(np.full((1, DIM), 1e300))
    index.add(rows[:50])
    with pytest.raises(ValueError, match="shape"):
        index.search(rows[0], 1)
    assert index.search(rows[:9], 1)[1].ravel().tolist() == list(range(9))
    with pytest.raises(ValueError, match="metric"):
        faiss.IndexRaBitQSSD(DIM, metric=7)
    faiss.write_index(index, tmp_path / "a")
    for call in (
        lambda: faiss.write_index(index, tmp_path / "a"),
        lambda: faiss.IndexRaBitQSSD(DIM, path=tmp_path / "a"),
    ):
        with pytest.raises(FileExistsError):
            call()
    with pytest.raises(RuntimeError, match="read"):
        faiss.read_index(tmp_path / "a").add(rows)
    with pytest.raises(FileNotFoundError):
        faiss.read_index(tmp_path / "none")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_that_ends_leaves_the_rows_to_its_parent(rows: Any) -> None:
    code = (
        "import os, sys, numpy as np; from rabitq_ssd import faiss\n"
        "x = np.random.default_rng(0).random((500, 8), dtype=np.float32)\n"
        "index = faiss.IndexRaBitQSSD(8); index.add(x)\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit(0)\n"
        "os.waitpid(child, 0); print(index.search(x[:2], 1)[1].ravel().tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 1]\n"
