"""Where the rows of a build come from, its options, and what a build that fails leaves: nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rabitq_ssd


def same(a: Any, b: Any, rows: Any) -> bool:
    """Whether two indexes answer alike."""
    found = [i.search(rows[:20], k=4, deterministic=True) for i in (a, b)]
    return all(np.array_equal(x, y) for x, y in zip(*found))


def batches(rows: Any, size: int = 500) -> Iterator[Any]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def test_an_iterator_of_batches_makes_the_index_of_the_array(rows: Any, tmp_path: Path) -> None:
    whole = rabitq_ssd.build(rows, tmp_path / "whole")
    assert same(whole, rabitq_ssd.build(batches(rows), tmp_path / "a", threads=1), rows)
    assert same(whole, rabitq_ssd.build(batches(rows, 7), tmp_path / "b"), rows)


def test_ids_come_with_the_batches_or_apart(rows: Any, tmp_path: Path) -> None:
    ids = np.arange(len(rows)) + 10**15
    plain = rabitq_ssd.build(rows, tmp_path / "plain").search(rows[:9], deterministic=True)
    np.save(tmp_path / "ids.npy", ids)
    given: list[dict[str, Any]] = [
        {"x": zip(batches(ids), batches(rows))},
        {"x": rows, "ids": ids},
        {"x": rows, "ids": ids.tolist()},
        {"x": rows, "ids": tmp_path / "ids.npy"},
    ]
    for number, source in enumerate(given):
        index = rabitq_ssd.build(dir=tmp_path / f"{number}", **source)
        found = index.search(rows[:9], deterministic=True)
        assert np.array_equal(found.ids, plain.ids + 10**15)


@pytest.mark.parametrize(
    ("error", "words", "make"),
    [
        (ValueError, "row 500.*dims", lambda x: iter([x[:500], x[:9, :5]])),
        (TypeError, "row 500.*float16", lambda x: iter([x[:500], x[:9].astype("f2")])),
        (TypeError, "every batch", lambda x: iter([(np.arange(500), x[:500]), x[:9]])),
        (ValueError, "as many ids", lambda x: iter([(np.arange(9), x[:500])])),
        (ValueError, "rows 0 and 500", lambda x: iter([(np.arange(500), x[:500])] * 2)),
        (TypeError, "pair", lambda x: iter([(1, 2, 3)])),
        (TypeError, "vectors", lambda x: iter([None])),
        (ValueError, "no rows", lambda x: iter([])),
        (ZeroDivisionError, "zero", lambda x: (x[: 1 // n] for n in (1, 0))),
    ],
)
def test_batches_that_do_not_fit_say_why(
    error: Any, words: str, make: Any, rows: Any, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        rabitq_ssd.build(make(rows), tmp_path / "a")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (ValueError, "metric", {"metric": "l3"}),
        (ValueError, "list_order", {"list_order": "random"}),
        (ValueError, "centroids", {"centroids": "f16"}),
        (ValueError, "bits", {"bits": 1}),
        (ValueError, "nlist", {"nlist": 0}),
        (TypeError, "nlist", {"nlist": "many"}),
        (ValueError, "memory", {"memory": "2 apples"}),
        (ValueError, "memory", {"memory": 10}),
        (ValueError, "prefix_dims", {"prefix_dims": 64, "memory": "1GiB"}),
        (TypeError, "progress", {"progress": "bar"}),
        (ValueError, "negative", {"ids": -np.arange(3000)}),
        (ValueError, "ids", {"ids": np.arange(5)}),
        (ValueError, "rows 0 and 1", {"ids": np.zeros(3000, int)}),
        (ValueError, "resume", {"resume": True}),
        (TypeError, "unknown", {"unknown": 1}),
    ],
)
def test_wrong_options_of_a_build_say_what_is_wrong(
    error: Any, words: str, arguments: dict[str, Any], rows: Any, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        rabitq_ssd.build(rows, tmp_path / "a", **arguments)
    assert os.listdir(tmp_path) == []


def test_files_and_patterns_are_read_in_natural_order(rows: Any, tmp_path: Path) -> None:
    for number in range(12):
        rabitq_ssd.convert(rows[number * 250 : (number + 1) * 250], tmp_path / f"x{number}.fbin")
    whole = rabitq_ssd.build(rows, tmp_path / "whole")
    names = [tmp_path / f"x{number}.fbin" for number in range(12)]
    assert same(whole, rabitq_ssd.build(names, tmp_path / "a"), rows)
    assert same(whole, rabitq_ssd.build(str(tmp_path / "x*.fbin"), tmp_path / "b"), rows)
    assert rabitq_ssd.build(names[0], tmp_path / "c", rows=100).n == 100
    with pytest.raises(FileNotFoundError, match="none"):
        rabitq_ssd.build(tmp_path / "none.fbin", tmp_path / "d")


def test_an_index_is_replaced_only_if_asked(rows: Any, tmp_path: Path) -> None:
    assert rabitq_ssd.build(rows[:100], tmp_path / "a").n == 100
    with pytest.raises(FileExistsError, match="overwrite"):
        rabitq_ssd.build(rows[:50], tmp_path / "a")
    assert rabitq_ssd.build(rows[:50], tmp_path / "a", overwrite=True).n == 50


def test_the_order_of_records_changes_reads_and_not_results(rows: Any, tmp_path: Path) -> None:
    near = rabitq_ssd.build(rows, tmp_path / "a", list_order="locality")
    far = rabitq_ssd.build(rows, tmp_path / "b", list_order="distance")
    assert same(near, far, rows)
    needs = rabitq_ssd.estimate(rows, list_order="distance", centroids="f32", dir=tmp_path)
    assert needs["disk_bytes"] > 0


def test_an_exception_in_progress_stops_a_build(rows: Any, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        rabitq_ssd.build(rows, tmp_path / "a", progress=lambda *_: 1 // 0)
    assert os.listdir(tmp_path) == []


def test_progress_runs_from_none_to_all_in_each_stage(rows: Any, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    rabitq_ssd.build(rows, tmp_path / "a", progress=lambda *t: told.append(t))
    for stage in {stage for stage, _, _ in told}:
        done = [d for s, d, _ in told if s == stage]
        assert done == sorted(done)
        assert all(d <= total for s, d, total in told if s == stage)
    assert told


def test_tqdm_shows_the_progress(rows: Any, tmp_path: Path) -> None:
    tqdm = pytest.importorskip("tqdm")
    with tqdm.tqdm(file=open(os.devnull, "w")) as bar:

        def show(stage: str, done: int, total: int) -> None:
            bar.set_description(stage)
            bar.total, bar.n = total, done
            bar.refresh()

        rabitq_ssd.build(rows, tmp_path / "a", progress=show)
        assert bar.n == bar.total > 0
