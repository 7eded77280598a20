"""What the command line does, as functions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rabitq_ssd
from rabitq_ssd._sizes import size
from support import exact


def test_a_recall_that_was_tuned_can_be_asked_for(rows: Any, tmp_path: Path) -> None:
    index = rabitq_ssd.build(rows, tmp_path / "a", nlist=16)
    points = rabitq_ssd.tune(index, rows, recall=0.8, sample=50, threads=1)
    assert [point["target_recall"] for point in points] == [0.8]
    assert index.search(rows[:3], recall=0.8).ids[:, 0].tolist() == [0, 1, 2]
    with rabitq_ssd.open(tmp_path / "a") as again:
        assert again.search(rows[0], recall=0.8).ids[0] == 0
    with pytest.raises(ValueError, match=r"0\.8 at k 10"):
        index.search(rows[0], recall=0.9)
    with pytest.raises(ValueError, match="recall"):
        index.search(rows[0], recall=1.5)


def test_tuning_takes_queries_and_ground_truth_of_external_ids(rows: Any, tmp_path: Path) -> None:
    ids = np.arange(len(rows)) + 500
    index = rabitq_ssd.build(rows, tmp_path / "a", nlist=16, ids=ids)
    with pytest.raises(ValueError, match="give ids"):
        rabitq_ssd.tune(index, rows, recall=0.8, sample=50)
    truth = rabitq_ssd.groundtruth(rows, rows[:50] + 0.01, k=10)
    for arguments in (
        {"x": rows, "queries": rows[:50] + 0.01, "ids": ids},
        {"queries": rows[:50] + 0.01, "groundtruth": truth.ids + 500},
        {"queries": rows[:50] + 0.01, "groundtruth": truth, "ids": ids},
    ):
        (point,) = rabitq_ssd.tune(index, recall=0.7, threads=1, **arguments)
        assert 0.7 <= point["recall"] <= 1 and point["nprobe"] <= 16
    with pytest.raises(ValueError, match="queries"):
        rabitq_ssd.tune(index, groundtruth=truth)


def test_ground_truth_is_what_numpy_finds(rows: Any, tmp_path: Path) -> None:
    queries = rows[:20] + 0.01
    truth = rabitq_ssd.groundtruth(rows, queries, k=10, out=tmp_path / "gt.bin")
    assert np.array_equal(truth.ids, exact(rows, queries, 10))
    products = rabitq_ssd.groundtruth(rows, queries, k=3, metric="ip")
    assert np.array_equal(products.ids, np.argsort(-(queries @ rows.T), axis=1)[:, :3])
    assert os.listdir(tmp_path) == ["gt.bin"]


def test_a_bench_measures_every_combination(index: Any, rows: Any, tmp_path: Path) -> None:
    truth = rabitq_ssd.groundtruth(rows, rows[:20], k=10, out=tmp_path / "gt.bin")
    for given in (truth, tmp_path / "gt.bin", truth.ids):
        found = rabitq_ssd.bench(index, rows[:20], given, nprobe=[1, index.nlist], rounds=1)
        assert [row["recall"] for row in found][1] == 1.0
    several = rabitq_ssd.bench(
        index.path, rows[:20], truth, k=[1, 10], threads=[1, 2], recall=0.5, rounds=1
    )
    assert len(several) == 4 and all(row["recall"] >= 0.5 for row in several)
    with pytest.raises(ValueError, match="k 11"):
        rabitq_ssd.bench(index, rows[:20], truth, k=11)
    with pytest.raises(ValueError, match="20 queries"):
        rabitq_ssd.bench(index, rows[:19], truth)


def test_an_index_is_described_and_checked(index: Any, tmp_path: Path) -> None:
    assert index.verify()["ok"] and rabitq_ssd.verify(index.path)["ok"]
    assert rabitq_ssd.info(index.path)["n"] == index.info()["n"] == index.ntotal == len(index)
    for call in (rabitq_ssd.open, rabitq_ssd.info, rabitq_ssd.verify):
        with pytest.raises(FileNotFoundError):
            call(tmp_path / "none")
        with pytest.raises(rabitq_ssd.OpenError):
            call(tmp_path)


def test_a_damaged_index_is_found_out(rows: Any, tmp_path: Path) -> None:
    rabitq_ssd.build(rows, tmp_path / "a").close()
    largest = max((tmp_path / "a").iterdir(), key=lambda path: path.stat().st_size)
    with open(largest, "r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))
    report = rabitq_ssd.verify(tmp_path / "a")
    assert not report["ok"] and any(not file["ok"] for file in report["files"])


def test_vectors_are_generated_and_converted(tmp_path: Path) -> None:
    made = rabitq_ssd.generate(tmp_path / "x.fbin", 50, 8, queries_out=tmp_path / "q.fbin")
    assert (made["n"], made["bytes"]) == (50, 8 + 50 * 8 * 4)
    assert rabitq_ssd.convert(made["out"], tmp_path / "x.npy")["n"] == 50
    assert np.load(tmp_path / "x.npy").shape == (50, 8)
    with pytest.raises(ValueError, match="overwrite"):
        rabitq_ssd.convert(made["out"], made["out"])
    with pytest.raises(ValueError, match="n must"):
        rabitq_ssd.generate(tmp_path / "y.fbin", 0, 8)
    with pytest.raises(ValueError, match="spectrum"):
        rabitq_ssd.generate(tmp_path / "y.fbin", 5, 8, spectrum="x")  # type: ignore[arg-type]


def test_an_estimate_keeps_the_budget(rows: Any, tmp_path: Path) -> None:
    needs = rabitq_ssd.estimate(n=10**6, dim=128, memory="1GiB", dir=tmp_path)
    assert needs["resident_bytes"] <= 2**30
    assert rabitq_ssd.estimate(rows, dir=tmp_path)["total_seconds"] > 0
    with pytest.raises(ValueError, match="n and dim"):
        rabitq_ssd.estimate()
    with pytest.raises(TypeError, match="unknown"):
        rabitq_ssd.estimate(rows, unknown=1)


def test_sizes_are_read_as_on_the_command_line() -> None:
    assert [size("m", s) for s in ("2GiB", "1.5 kb", 7, None)] == [2 << 30, 1500, 7, None]
    for wrong in ("2G", "-1", ""):
        with pytest.raises(ValueError, match="m"):
            size("m", wrong)
    with pytest.raises(TypeError):
        size("m", 1.5)  # type: ignore[arg-type]


def test_what_is_read_is_never_written_over(rows: Any, tmp_path: Path) -> None:
    x, out = tmp_path / "x.npy", tmp_path / "g.fbin"
    np.save(x, rows)
    before = x.read_bytes()
    with pytest.raises(ValueError, match="overwrite"):
        rabitq_ssd.groundtruth(x, rows[:3], k=2, out=x)
    with pytest.raises(ValueError, match="overwrite"):
        rabitq_ssd.groundtruth(rows, x, k=2, out=x)
    assert x.read_bytes() == before
    with pytest.raises(ValueError, match="same file"):
        rabitq_ssd.generate(out, 100, 8, queries_out=f"{tmp_path}/./g.fbin")
    assert not out.exists()


def test_a_tuning_of_no_neighbours_is_refused_and_keeps_what_was_found(
    rows: Any, tmp_path: Path
) -> None:
    index = rabitq_ssd.build(rows, tmp_path / "a", nlist=16)
    rabitq_ssd.tune(index, rows, recall=0.8, sample=50, threads=1)
    for wrong in ({"k": 0}, {"k": -1}, {"k": []}, {"sample": -5}):
        with pytest.raises(ValueError, match="at least 1"):
            rabitq_ssd.tune(index, rows, recall=0.8, **wrong)
    assert index.search(rows[0], recall=0.8).ids[0] == 0


def test_files_of_a_pattern_are_in_the_order_of_the_command_line(tmp_path: Path) -> None:
    for value, name in enumerate(("a2", "b1", "a10", "c")):
        rabitq_ssd.convert(np.full((1, 4), value, "f4"), tmp_path / f"gl_{name}.fbin")
    rabitq_ssd.convert(tmp_path / "gl_*.fbin", tmp_path / "all.npy")
    assert np.load(tmp_path / "all.npy")[:, 0].tolist() == [0, 2, 1, 3]


def test_ids_of_another_shape_than_one_a_row_are_refused(rows: Any, tmp_path: Path) -> None:
    names = tmp_path / "ids.u64bin"
    for head, count in ((5, 3000), (3000, 2999)):
        names.write_bytes(np.array([head, 1], "<u4").tobytes() + bytes(8 * count))
        with pytest.raises(ValueError, match=r"ids\.u64bin"):
            rabitq_ssd.build(rows, tmp_path / "a", ids=names)
    with pytest.raises(ValueError, match="one dimension"):
        rabitq_ssd.build(rows, tmp_path / "a", ids=np.arange(3000).reshape(1500, 2))
    names.write_bytes(
        np.array([3000, 1], "<u4").tobytes() + np.arange(7, 3007, dtype="<u8").tobytes()
    )
    index = rabitq_ssd.build(rows, tmp_path / "a", ids=names)
    assert index.search(rows[0], k=1).ids[0] == 7
