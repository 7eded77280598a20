"""Arrays of every type and layout, as rows and as queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rabitq_ssd
from support import DIM, exact


def small(x: Any) -> Any:
    """The rows as whole numbers that every type holds."""
    return np.clip(np.round(x * 20 + 60), 0, 120)


def frozen(x: Any) -> Any:
    x = x.copy()
    x.flags.writeable = False
    return x


def spread(x: Any) -> Any:
    wide = np.full((2 * len(x), 3 * x.shape[1]), np.nan, x.dtype)
    wide[::2, ::3] = x
    return wide[::2, ::3]


def unaligned(x: Any) -> Any:
    raw = np.empty(x.nbytes + 1, np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[:] = x
    return view


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x,
    "Fortran order": np.asfortranarray,
    "strided": spread,
    "reversed": lambda x: x[::-1].copy()[::-1],
    "read-only": frozen,
    "unaligned": unaligned,
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "subclass": lambda x: x.view(type("Rows", (np.ndarray,), {})),
    "list of lists": lambda x: x.tolist(),
    "list of arrays": list,
}
DTYPES = ["f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "i8", "u8", "?"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_of_every_layout_make_the_same_index(layout: str, rows: Any, tmp_path: Path) -> None:
    few = rows[:200]
    index = rabitq_ssd.build(LAYOUTS[layout](few), tmp_path / "a", record="f32")
    found = index.search(few[:9] + 0.01, k=4, nprobe=index.nlist)
    assert np.array_equal(found.ids, exact(few, few[:9] + 0.01, 4))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_queries_of_every_layout_find_the_same(layout: str, index: Any, rows: Any) -> None:
    found = index.search(LAYOUTS[layout](rows[:4]), k=1, nprobe=index.nlist)
    assert found.ids[:, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_and_queries_of_every_type(dtype: str, rows: Any, tmp_path: Path) -> None:
    few = small(rows[:200]) > 60 if dtype == "?" else small(rows[:200]).astype(dtype)
    index = rabitq_ssd.build(few, tmp_path / "a", record="f32")
    found = index.search(few[:9], k=3, nprobe=index.nlist)
    nearest = exact(few.astype(np.float32), few[:9].astype(np.float32), 3)
    far = ((few[nearest].astype(float) - few[:9, None].astype(float)) ** 2).sum(-1)
    assert np.allclose(found.distances, far, rtol=1e-5)


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_memory_maps_of_npy_files(mode: Any, rows: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows[:300])
    mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
    if mode == "c":
        mapped[0] = 0.5  # In memory only: the file is not what is to be built from.
    index = rabitq_ssd.build(mapped, tmp_path / "a", record="f32")
    queries = np.asarray(mapped[:5])
    assert index.search(queries, k=1, nprobe=9).ids[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert index.search(mapped[2], k=1, nprobe=9).distances.tolist() == [0.0]
    part = rabitq_ssd.build(mapped[:150:2], tmp_path / "b", record="f32")
    assert part.n == 75 and part.search(queries[4], k=1, nprobe=9).ids.tolist() == [2]


def test_memory_maps_of_raw_files(rows: Any, tmp_path: Path) -> None:
    rows[:300].tofile(tmp_path / "x.bin")
    mapped = np.memmap(tmp_path / "x.bin", np.float32, "r", shape=(300, DIM))
    index = rabitq_ssd.build(mapped, tmp_path / "a", record="f32")
    assert index.search(mapped[7], k=1, nprobe=9).ids.tolist() == [7]


@pytest.mark.parametrize(
    ("error", "words", "x"),
    [
        (ValueError, ["no rows"], np.empty((0, DIM), np.float32)),
        (ValueError, ["shape"], np.zeros(DIM)),
        (ValueError, ["shape"], np.zeros((2, 3, 4))),
        (ValueError, ["shape"], []),
        (ValueError, ["vectors", "shape"], [[1.0, 2.0], [1.0]]),
        (TypeError, ["vectors"], np.zeros((9, 4), complex)),
        (TypeError, ["vectors"], np.full((9, 4), "x")),
        (TypeError, ["int"], 5),
        (ValueError, ["row 3"], np.where(np.arange(9)[:, None] == 3, np.nan, np.ones((9, 4)))),
        (ValueError, ["row 3"], np.where(np.arange(9)[:, None] == 3, np.inf, np.ones((9, 4)))),
        (ValueError, ["row 0", "float32"], np.full((9, 4), 1e300)),
    ],
)
def test_rows_that_cannot_be_built_from_say_why(
    error: Any, words: list[str], x: Any, tmp_path: Path
) -> None:
    with pytest.raises(error) as raised:
        rabitq_ssd.build(x, tmp_path / "a")
    assert all(word in str(raised.value) for word in words), raised.value
    assert list(tmp_path.iterdir()) == []


def test_invalid_rows_are_left_out_if_asked(rows: Any, tmp_path: Path) -> None:
    bad = rows[:100].copy()
    bad[7] = np.nan
    index = rabitq_ssd.build(bad, tmp_path / "a", on_invalid="skip", record="f32")
    assert index.search(bad[8], k=1, nprobe=9).ids.tolist() == [8]
    assert 7 not in index.search(bad[8], k=100, nprobe=9).ids
