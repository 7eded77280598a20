"""Arrow tables, readers and Parquet files as rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rabitq_ssd
from support import DIM

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def column(rows: Any, kind: str) -> Any:
    values = pa.array(rows.reshape(-1))
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(values, rows.shape[1])
    offsets = np.arange(len(rows) + 1) * rows.shape[1]
    if kind == "large":
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def table(rows: Any, kind: str = "fixed") -> Any:
    ids = pa.array(np.arange(len(rows)) * 3 + 7)
    names = pa.array([f"row {i}" for i in range(len(rows))])
    return pa.table({"name": names, "id": ids, "vector": column(rows, kind)})


def check(source: Any, rows: Any, tmp_path: Path) -> None:
    index = rabitq_ssd.build(source, tmp_path / "a", id_column="id", record="f32")
    assert index.n == len(rows)
    found = index.search(rows[:20], k=1, nprobe=index.nlist).ids[:, 0]
    assert found.tolist() == [i * 3 + 7 for i in range(20)]


@pytest.mark.parametrize("kind", ["fixed", "list", "large"])
def test_a_table_with_any_list_column(kind: str, rows: Any, tmp_path: Path) -> None:
    check(table(rows, kind), rows, tmp_path)


@pytest.mark.parametrize("kind", ["fixed", "list"])
def test_a_slice_of_a_table_is_that_slice(kind: str, rows: Any, tmp_path: Path) -> None:
    part = table(rows, kind).slice(100, 50)
    index = rabitq_ssd.build(part, tmp_path / "a", record="f32")
    assert index.n == 50
    assert index.search(rows[103], k=1, nprobe=9).ids.tolist() == [3]


def test_a_reader_and_its_batches(rows: Any, tmp_path: Path) -> None:
    pieces = table(rows).to_batches(max_chunksize=700)
    reader = pa.RecordBatchReader.from_batches(pieces[0].schema, iter(pieces))
    check(reader, rows, tmp_path)
    whole = rabitq_ssd.build(iter(pieces), tmp_path / "b", id_column="id")
    assert whole.n == len(rows)
    assert rabitq_ssd.build(pieces[0], tmp_path / "c").n == 700


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i4"])
def test_columns_of_every_type(dtype: str, rows: Any, tmp_path: Path) -> None:
    values = np.clip(rows[:99] * 20 + 60, 0, 120).astype(dtype)
    index = rabitq_ssd.build(table(values), tmp_path / "a", record="f32")
    found = index.search(values[5].astype("f4"), k=1, nprobe=9)
    assert found.ids.tolist() == [5] and found.distances.tolist() == [0.0]


def test_parquet_files_are_streamed(rows: Any, tmp_path: Path) -> None:
    parquet.write_table(table(rows[:2000]), tmp_path / "p1.parquet", row_group_size=300)
    parquet.write_table(table(rows[2000:]), tmp_path / "p2.parquet")
    index = rabitq_ssd.build(str(tmp_path / "p*.parquet"), tmp_path / "a", record="f32")
    found = index.search(rows[1990:2010], k=1, nprobe=index.nlist).ids[:, 0]
    assert found.tolist() == list(range(1990, 2010))


@pytest.mark.parametrize(
    ("error", "words", "make", "arguments"),
    [
        (ValueError, "nulls", lambda x: pa.table({"v": pa.array([[1.0], None])}), {}),
        (ValueError, "nulls", lambda x: pa.table({"v": pa.array([[1.0], [None]])}), {}),
        (ValueError, "length", lambda x: pa.table({"v": pa.array([[1.0], [1.0, 2.0]])}), {}),
        (ValueError, "length", lambda x: pa.table({"v": pa.array([[1.0], [1.0, 2, 3]])}), {}),
        (TypeError, "v", lambda x: pa.table({"v": pa.array([["a"], ["b"]])}), {}),
        (ValueError, "vector_column", lambda x: pa.table({"n": [1, 2]}), {}),
        (ValueError, "'w'", lambda x: table(x), {"vector_column": "w"}),
        (ValueError, "'w'", lambda x: table(x), {"id_column": "w"}),
        (TypeError, "name", lambda x: table(x), {"id_column": "name"}),
        (ValueError, "ids", lambda x: table(x), {"id_column": "id", "ids": range(3000)}),
        (ValueError, "no rows", lambda x: table(x[:0]), {}),
    ],
)
def test_tables_that_cannot_be_built_from_say_why(
    error: Any, words: str, make: Any, arguments: Any, rows: Any, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        rabitq_ssd.build(make(rows), tmp_path / "a", **arguments)
    assert os.listdir(tmp_path) == []


def test_the_only_list_column_is_found(rows: Any, tmp_path: Path) -> None:
    two = table(rows).append_column("other", column(rows[:, :5].copy(), "fixed"))
    with pytest.raises(ValueError, match="vector_column"):
        rabitq_ssd.build(two, tmp_path / "a")
    index = rabitq_ssd.build(two, tmp_path / "a", vector_column="vector")
    assert index.dim == DIM
