"""The package and the command line answer alike."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rabitq_ssd


def program() -> str:
    """The binary: $RABITQ_SSD, or where cargo builds it."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target"))
    places = [target / "debug" / "rabitq-ssd", target / "release" / "rabitq-ssd"]
    found = os.environ.get("RABITQ_SSD") or next((str(p) for p in places if p.exists()), None)
    if found is None:
        pytest.skip("the command line is not built: cargo build")
    return found


def run(*arguments: Any) -> list[dict[str, Any]]:
    done = subprocess.run(
        [program(), *map(str, arguments), "--json"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_ids_and_distances_are_those_of_the_command_line(rows: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows)
    np.save(tmp_path / "q.npy", rows[:50] + np.float32(0.1))
    run("build", tmp_path / "x.npy", "--out", tmp_path / "theirs", "--nlist", 12)
    ours = rabitq_ssd.build(rows, tmp_path / "ours", nlist=12)
    queries = np.load(tmp_path / "q.npy")
    for index in (ours, rabitq_ssd.open(tmp_path / "theirs")):
        found = index.search(queries, k=7, nprobe=4, deterministic=True)
        told = run(
            "search", index.path, tmp_path / "q.npy", "--k", 7, "--nprobe", 4, "--deterministic"
        )
        assert [line["ids"] for line in told] == found.ids.tolist()
        scores = np.array([line["scores"] for line in told], np.float32)
        assert np.array_equal(scores, found.distances)


def test_points_that_the_command_line_tuned_are_known(rows: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows)
    rabitq_ssd.build(rows, tmp_path / "a", nlist=12).close()
    run("tune", tmp_path / "a", "--base", tmp_path / "x.npy", "--recall", 0.8)
    with rabitq_ssd.open(tmp_path / "a") as index:
        assert index.search(rows[:5], recall=0.8).ids[:, 0].tolist() == [0, 1, 2, 3, 4]
