"""Threads, processes and pickles that share an index."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rabitq_ssd
from support import DIM, normal


def test_eight_threads_at_once_get_the_same_answers(index: Any, rows: Any) -> None:
    alone = index.search(rows[:200], nprobe=2, deterministic=True, threads=1).ids

    def ask(thread: int) -> Any:
        if thread % 2:
            return index.search(rows[:200], nprobe=2, deterministic=True, threads=1).ids
        each = [index.search(row, nprobe=2, deterministic=True).ids for row in rows[:200]]
        return np.stack(each)

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(ask, range(8)):
            assert np.array_equal(found, alone)


def test_closing_lets_searches_come_to_their_end(rows: Any, tmp_path: Path) -> None:
    index = rabitq_ssd.build(rows, tmp_path / "a")
    started = threading.Event()

    def ask() -> int:
        answered = 0
        with pytest.raises(ValueError, match="closed"):
            while True:
                answered += len(index.search(rows[:50]).ids)
                started.set()
        return answered

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask) for _ in range(4)]
        assert started.wait(60)
        index.close()
        assert all(one.result() % 50 == 0 for one in asked)


@contextmanager
def counting() -> Iterator[list[int]]:
    """A thread that counts, a thousand a second if nobody holds the GIL."""
    count, over = [0], threading.Event()

    def run() -> None:
        while not over.wait(0.001):
            count[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield count
    finally:
        over.set()
        thread.join()


def test_other_threads_run_during_a_build_and_a_search(tmp_path: Path) -> None:
    x = normal(20_000, 64)
    np.save(tmp_path / "x.npy", x)
    with counting() as count:
        index = rabitq_ssd.build(tmp_path / "x.npy", tmp_path / "a")
        built = count[0]
        index.search(x[:500])
        searched = count[0] - built
    assert built > 20 and searched > 5, (built, searched)


def test_a_progress_that_waits_for_another_thread_does_not_deadlock(
    rows: Any, tmp_path: Path
) -> None:
    def tell(*_: object) -> None:
        other = threading.Thread(target=lambda: None)
        other.start()
        other.join()

    assert rabitq_ssd.build(rows, tmp_path / "a", progress=tell).n == len(rows)


def test_a_pickle_opens_the_same_path_in_the_same_way(index: Any, rows: Any) -> None:
    with rabitq_ssd.open(index.path, io_backend="pread", io_timeout=5) as first:
        packed = pickle.dumps(first)
    with pickle.loads(packed) as other:
        assert other.search(rows[5], k=1).ids.tolist() == [5]
        assert (other.n, other.dim, other.metric, other.path) == (3000, DIM, "l2", index.path)
        assert pickle.dumps(other) == packed


def test_a_forked_process_searches_and_its_parent_goes_on(index: Any, rows: Any) -> None:
    index.search(rows[:9])
    child = os.fork()
    if child == 0:
        found = index.search(rows[:50], k=1, nprobe=index.nlist).ids[:, 0]
        os._exit(0 if found.tolist() == list(range(50)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert index.search(rows[3], k=1).ids.tolist() == [3]


def test_an_index_opened_by_a_relative_path_stays_itself_elsewhere(
    rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, x in (("one", rows), ("two", -rows)):
        (tmp_path / name).mkdir()
        rabitq_ssd.build(x, tmp_path / name / "index")
    monkeypatch.chdir(tmp_path / "one")
    index = rabitq_ssd.open("index")
    monkeypatch.chdir(tmp_path / "two")
    assert pickle.loads(pickle.dumps(index)).search(rows[5], k=1).ids[0] == 5
