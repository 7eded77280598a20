"""Results of a search: shapes, types, order, what is missing, and how it may be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rabitq_ssd
from support import DIM, exact, normal


def test_a_search_of_all_lists_finds_what_numpy_finds(index: Any, rows: Any) -> None:
    found = index.search(rows[:50] + 0.01, k=5, nprobe=index.nlist)
    assert np.array_equal(found.ids, exact(rows, rows[:50] + 0.01, 5))
    assert (found.distances.dtype, found.ids.dtype) == (np.float32, np.int64)
    assert (np.diff(found.distances, axis=1) >= 0).all()


def test_one_query_gives_one_row_of_the_batch(index: Any, rows: Any) -> None:
    batch = index.search(rows[:4], k=3, nprobe=99, deterministic=True)
    one = index.search(rows[1], k=3, nprobe=99, deterministic=True)
    assert one.ids.shape == one.distances.shape == (3,)
    assert np.array_equal(one.ids, batch.ids[1])
    assert index.search(rows[1:2], k=3).ids.shape == (1, 3)


def test_what_is_missing_has_no_id_and_is_infinitely_far(index: Any, rows: Any) -> None:
    found = index.search(rows[:2], k=index.n + 5, nprobe=index.nlist)
    assert (found.ids[:, -5:] == -1).all() and np.isposinf(found.distances[:, -5:]).all()
    assert (found.ids[:, :-5] >= 0).all()


@pytest.mark.parametrize("metric", ["ip", "cosine"])
def test_missing_products_are_infinitely_small(metric: Any, tmp_path: Path) -> None:
    index = rabitq_ssd.build(normal(9), tmp_path / "a", metric=metric)
    found = index.search(normal(2, seed=1), k=10, nprobe=9)
    assert (found.ids[:, -1] == -1).all() and np.isneginf(found.distances[:, -1]).all()
    assert (np.diff(found.distances, axis=1) <= 0).all()


def test_no_queries_give_no_rows(index: Any) -> None:
    found = index.search(np.empty((0, DIM), np.float32), k=3)
    assert found.ids.shape == found.distances.shape == (0, 3)


def test_counters_are_summed_over_the_queries(index: Any, rows: Any) -> None:
    stats = index.search(rows[:3], nprobe=index.nlist, return_stats=True).stats
    assert stats["lists_probed"] == 3 * index.nlist and stats["codes_scanned"] == 3 * index.n


def test_ids_beyond_int64_come_as_uint64(rows: Any, tmp_path: Path) -> None:
    ids = np.arange(len(rows), dtype=np.uint64) + np.uint64(2**63)
    index = rabitq_ssd.build(rows, tmp_path / "a", ids=ids)
    found = index.search(rows[:1], k=1).ids
    assert found.dtype == np.uint64 and int(found[0, 0]) == 2**63


def test_more_threads_give_the_same_results(index: Any, rows: Any) -> None:
    one = index.search(rows[:99], threads=1, nprobe=2, deterministic=True)
    many = index.search(rows[:99], threads=8, nprobe=2, deterministic=True)
    assert np.array_equal(one.ids, many.ids) and np.array_equal(one.distances, many.distances)


def test_an_array_is_not_changed_by_a_search(index: Any, rows: Any) -> None:
    queries = rows[:5].copy()
    index.search(queries)
    assert np.array_equal(queries, rows[:5])


def test_a_query_out_of_time_is_a_timeout_and_a_search_error(index: Any, rows: Any) -> None:
    for queries in (rows[0], rows[:100]):
        with pytest.raises(rabitq_ssd.SearchTimeoutError) as raised:
            index.search(queries, nprobe=index.nlist, timeout=1e-9)
        assert isinstance(raised.value, TimeoutError)
        assert isinstance(raised.value, rabitq_ssd.SearchError)
        assert "within" in str(raised.value)
    assert index.search(rows[0], k=1, timeout=60).ids.tolist() == [0]


def test_a_closed_index_is_not_searched(rows: Any, tmp_path: Path) -> None:
    with rabitq_ssd.build(rows, tmp_path / "a") as index:
        assert not index.closed
    assert index.closed and "closed" in repr(index)
    with pytest.raises(ValueError, match="closed"):
        index.search(rows[0])


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (ValueError, ["5", str(DIM)], lambda i: i.search(np.zeros((2, 5)))),
        (ValueError, ["query 1"], lambda i: i.search([[0.0] * DIM, [np.nan] * DIM])),
        (ValueError, ["query 0"], lambda i: i.search([np.inf] * DIM)),
        (ValueError, ["shape"], lambda i: i.search(np.zeros((1, 1, DIM)))),
        (ValueError, ["shape"], lambda i: i.search(3.0)),
        (TypeError, ["queries"], lambda i: i.search("text")),
        (TypeError, ["queries"], lambda i: i.search([object()])),
        (TypeError, ["queries"], lambda i: i.search(np.zeros(DIM, complex))),
        (ValueError, ["k"], lambda i: i.search(np.zeros(DIM), k=0)),
        (ValueError, ["-3"], lambda i: i.search(np.zeros(DIM), nprobe=-3)),
        (TypeError, ["k"], lambda i: i.search(np.zeros(DIM), k=1.5)),
        (ValueError, ["alpha"], lambda i: i.search(np.zeros(DIM), alpha=2)),
        (ValueError, ["pipeline"], lambda i: i.search(np.zeros(DIM), pipeline="x")),
        (ValueError, ["threads"], lambda i: i.search(np.zeros(DIM), threads=0)),
        (ValueError, ["timeout", "0"], lambda i: i.search(np.zeros(DIM), timeout=0)),
        (ValueError, ["timeout", "NaN"], lambda i: i.search(np.zeros(DIM), timeout=np.nan)),
        (ValueError, ["tune"], lambda i: i.search(np.zeros(DIM), k=99, recall=0.9)),
        (ValueError, ["nprobe", "recall"], lambda i: i.search(np.zeros(DIM), nprobe=1, recall=1)),
        (MemoryError, ["memory"], lambda i: i.search(np.zeros((9, DIM)), k=2**60)),
    ],
)
def test_wrong_arguments_of_a_search_say_what_is_wrong(
    index: Any, error: Any, words: list[str], call: Any
) -> None:
    with pytest.raises(error) as raised:
        call(index)
    assert all(word in str(raised.value) for word in words), raised.value
