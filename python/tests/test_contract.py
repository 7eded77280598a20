"""What every caller may rely on: shapes, types, errors, and that nothing is left behind."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rabitq_ssd
from rabitq_ssd._sizes import size

DIM = 24


@pytest.fixture(scope="module")
def rows() -> Any:
    return np.random.default_rng(7).standard_normal((3000, DIM), dtype=np.float32)


@pytest.fixture(scope="module")
def index(rows: Any, tmp_path_factory: pytest.TempPathFactory) -> rabitq_ssd.Index:
    return rabitq_ssd.build(rows, tmp_path_factory.mktemp("contract") / "index", record="f32")


def exact(rows: Any, queries: Any, k: int) -> Any:
    distances = ((queries[:, None, :].astype(float) - rows[None].astype(float)) ** 2).sum(-1)
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


def test_a_search_of_all_lists_finds_what_numpy_finds(index: Any, rows: Any) -> None:
    found = index.search(rows[:50] + 0.01, k=5, nprobe=index.nlist)
    assert np.array_equal(found.ids, exact(rows, rows[:50] + 0.01, 5))
    assert (found.distances.dtype, found.ids.dtype) == (np.float32, np.int64)
    assert (np.diff(found.distances, axis=1) >= 0).all()


def test_one_query_gives_one_row_and_every_layout_the_same(index: Any, rows: Any) -> None:
    batch = index.search(rows[:4], k=3, nprobe=99, deterministic=True)
    one = index.search(rows[1], k=3, nprobe=99, deterministic=True)
    assert one.ids.shape == (3,) and np.array_equal(one.ids, batch.ids[1])
    frozen = rows[:4].copy()
    frozen.flags.writeable = False
    double = rows[:4].astype(np.float64)
    for other in (frozen, double, np.asfortranarray(rows[:4]), rows[:4].tolist()):
        assert index.search(other, k=1, nprobe=99).ids[:, 0].tolist() == [0, 1, 2, 3]
    assert index.search(rows[:8:2], k=1, nprobe=99).ids[:, 0].tolist() == [0, 2, 4, 6]


def test_what_is_missing_has_no_id_and_is_infinitely_far(index: Any, rows: Any) -> None:
    found = index.search(rows[:2], k=index.n + 5, nprobe=index.nlist)
    assert (found.ids[:, -5:] == -1).all() and np.isposinf(found.distances[:, -5:]).all()
    assert (found.ids[:, :-5] >= 0).all()
    assert index.search(np.empty((0, DIM), np.float32), k=3).ids.shape == (0, 3)


def test_counters_are_summed_over_the_queries(index: Any, rows: Any) -> None:
    stats = index.search(rows[:3], nprobe=index.nlist, return_stats=True).stats
    assert stats["lists_probed"] == 3 * index.nlist and stats["codes_scanned"] == 3 * index.n


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (ValueError, ["5", str(DIM)], lambda i: i.search(np.zeros((2, 5)))),
        (ValueError, ["query 1"], lambda i: i.search([[0.0] * DIM, [np.nan] * DIM])),
        (ValueError, ["shape"], lambda i: i.search(np.zeros((1, 1, DIM)))),
        (TypeError, ["queries"], lambda i: i.search("text")),
        (TypeError, ["queries"], lambda i: i.search([object()])),
        (ValueError, ["k"], lambda i: i.search(np.zeros(DIM), k=0)),
        (ValueError, ["-3"], lambda i: i.search(np.zeros(DIM), nprobe=-3)),
        (TypeError, ["k"], lambda i: i.search(np.zeros(DIM), k=1.5)),
        (ValueError, ["alpha"], lambda i: i.search(np.zeros(DIM), alpha=2)),
        (ValueError, ["pipeline"], lambda i: i.search(np.zeros(DIM), pipeline="x")),
        (ValueError, ["tune"], lambda i: i.search(np.zeros(DIM), k=99, recall=0.9)),
    ],
)
def test_wrong_arguments_of_a_search_say_what_is_wrong(
    index: Any, error: Any, words: list[str], call: Any
) -> None:
    with pytest.raises(error) as raised:
        call(index)
    assert all(word in str(raised.value) for word in words), raised.value


def test_a_build_that_fails_leaves_nothing_behind(rows: Any, tmp_path: Path) -> None:
    bad = rows[:100].copy()
    bad[7, 3] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        rabitq_ssd.build(bad, tmp_path / "a")
    with pytest.raises(ValueError, match=r"row 0.*float32"):
        rabitq_ssd.build(np.full((9, 4), 1e300), tmp_path / "a")
    with pytest.raises(ZeroDivisionError):
        rabitq_ssd.build(rows, tmp_path / "a", progress=lambda *_: 1 // 0)
    with pytest.raises(FileNotFoundError):
        rabitq_ssd.build(tmp_path / "none.fbin", tmp_path / "a")
    with pytest.raises(ValueError, match="metric"):
        rabitq_ssd.build(rows, tmp_path / "a", metric="l3")  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_ctrl_c_stops_a_build(rows: Any, tmp_path: Path) -> None:
    told = threading.Event()

    def interrupt(stage: str, done: int, total: int) -> None:
        if not told.is_set():
            told.set()
            os.kill(os.getpid(), signal.SIGINT)

    large = np.tile(rows, (40, 1)) + np.random.default_rng(1).random((120_000, 1), np.float32)
    with pytest.raises(KeyboardInterrupt):
        rabitq_ssd.build(large, tmp_path / "a", progress=interrupt)
    assert told.is_set() and not (tmp_path / "a").exists()


def test_iterators_and_memory_maps_build_the_same_index(rows: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    pairs = ((np.arange(s, s + 500) + 10**15, rows[s : s + 500]) for s in range(0, 3000, 500))
    named = rabitq_ssd.build(pairs, tmp_path / "named")
    plain = rabitq_ssd.build(mapped, tmp_path / "plain")
    other = rabitq_ssd.build(mapped[::-1][::-1], tmp_path / "other", threads=1)
    a, b, c = (i.search(rows[:9], k=4, deterministic=True) for i in (named, plain, other))
    assert np.array_equal(a.ids, b.ids + 10**15) and np.array_equal(b.ids, c.ids)
    half = rabitq_ssd.build(mapped[:1500], tmp_path / "half")
    assert half.n == 1500


def test_ids_beyond_int64_come_as_uint64(rows: Any, tmp_path: Path) -> None:
    ids = np.arange(len(rows), dtype=np.uint64) + np.uint64(2**63)
    index = rabitq_ssd.build(rows, tmp_path / "a", ids=ids)
    found = index.search(rows[:1], k=1).ids
    assert found.dtype == np.uint64 and int(found[0, 0]) == 2**63
    with pytest.raises(ValueError, match="rows 0 and 1"):
        rabitq_ssd.build(rows[:2], tmp_path / "b", ids=[4, 4])


def test_an_index_is_pickled_by_path_and_closed_by_with(index: Any, rows: Any) -> None:
    with pickle.loads(pickle.dumps(index)) as other:
        assert other.search(rows[5], k=1).ids.tolist() == [5]
        assert (other.n, other.dim, other.metric) == (3000, DIM, "l2")
    with pytest.raises(ValueError, match="closed"):
        other.search(rows[5])
    with pytest.raises(FileNotFoundError):
        rabitq_ssd.open("no-such-index")


def test_a_recall_that_was_tuned_can_be_asked_for(rows: Any, tmp_path: Path) -> None:
    index = rabitq_ssd.build(rows, tmp_path / "a", nlist=16)
    points = rabitq_ssd.tune(index, rows, recall=0.8, sample=50, threads=1)
    assert [point["target_recall"] for point in points] == [0.8]
    assert index.search(rows[:3], recall=0.8).ids[:, 0].tolist() == [0, 1, 2]
    truth = rabitq_ssd.groundtruth(rows, rows[:20], k=10, out=tmp_path / "gt.bin")
    assert np.array_equal(truth.ids, exact(rows, rows[:20], 10))
    for given in (truth, tmp_path / "gt.bin", truth.ids):
        (row,) = rabitq_ssd.bench(index, rows[:20], given, nprobe=16, rounds=1)
        assert row["recall"] > 0.8


def test_files_are_described_checked_and_converted(index: Any, tmp_path: Path) -> None:
    assert index.verify()["ok"] and rabitq_ssd.verify(index.path)["ok"]
    assert rabitq_ssd.info(index.path)["n"] == index.info()["n"] == index.ntotal
    made = rabitq_ssd.generate(tmp_path / "x.fbin", 50, 8, queries_out=tmp_path / "q.fbin")
    assert made["n"] == 50 and rabitq_ssd.convert(made["out"], tmp_path / "x.npy")["n"] == 50
    assert np.load(tmp_path / "x.npy").shape == (50, 8)
    needs = rabitq_ssd.estimate(n=10**6, dim=128, memory="1GiB", dir=tmp_path)
    assert needs["resident_bytes"] <= 2**30


def test_sizes_are_read_as_on_the_command_line() -> None:
    assert [size("m", s) for s in ("2GiB", "1.5 kb", 7, None)] == [2 << 30, 1500, 7, None]
    for wrong in ("2G", "-1", ""):
        with pytest.raises(ValueError, match="m"):
            size("m", wrong)
    with pytest.raises(TypeError):
        size("m", 1.5)  # type: ignore[arg-type]
