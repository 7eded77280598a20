"""Where rows come from: files as they are; arrays, iterators and Arrow tables through a temporary
file beside the index, so that a build never holds more rows in memory than its budget.

    paths, patterns           the files themselves
    memmap of a whole .npy    its file
    everything else           batches ─ check ─ temporary .npy ─ removed in all cases
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._arrays import ids as checked_ids
from ._arrays import numbers
from ._core import Error

#: Types that vector files hold; anything else is converted to float32.
_KEPT = {np.dtype(t) for t in (np.float32, np.float16, np.int8, np.uint8)}
#: Bytes of rows converted at a time.
_BATCH = 32 << 20
#: Bytes before the first row of a .npy file written here.
HEADER = 128


class Source(NamedTuple):
    """Vector files, and the ids that came with the rows, if any did."""

    paths: list[str]
    ids: npt.NDArray[np.uint64] | None


@contextlib.contextmanager
def files(
    x: Any, beside: str, vector_column: str | None = None, id_column: str | None = None
) -> Iterator[Source]:
    """The rows of ``x`` as vector files; temporary ones are made in the folder ``beside``."""
    paths = _paths(x)
    if paths is not None and not any(p.endswith(".parquet") for p in paths):
        yield Source(paths, None)
        return
    file = _mapped_file(x)
    if file is not None:
        yield Source([file], None)
        return
    os.makedirs(beside, exist_ok=True)
    handle, path = tempfile.mkstemp(prefix=".rabitq-ssd.", suffix=".npy", dir=beside)
    try:
        with os.fdopen(handle, "wb", buffering=0) as out:
            source = x if paths is None else _parquet(paths, vector_column, id_column)
            ids = _write(out, _batches(source, vector_column, id_column))
        try:
            yield Source([path], ids)
        except (ValueError, Error) as error:
            if path not in str(error):
                raise
            # Of a file that nobody knows: the row is what counts.
            raise type(error)(str(error).replace(f"{path}: ", "").replace(path, "x")) from None
    finally:
        os.unlink(path)


def in_files(x: Any) -> bool:
    """Whether the rows lie in vector files already, and so can be found again."""
    paths = _paths(x)
    parquet = paths is not None and any(p.endswith(".parquet") for p in paths)
    return _mapped_file(x) is not None if paths is None else not parquet


def _paths(x: Any) -> list[str] | None:
    if isinstance(x, (str, os.PathLike)):
        return _expand(os.fspath(x))
    if isinstance(x, (list, tuple)) and x and all(isinstance(p, (str, os.PathLike)) for p in x):
        return [path for p in x for path in _expand(os.fspath(p))]
    return None


def _expand(path: str | bytes) -> list[str]:
    """The files of a pattern, part2 before part10; a path that is no pattern as it is."""
    path = os.fsdecode(path)
    if os.path.exists(path) or not set("*?") & set(os.path.basename(path)):
        return [path]
    folder, name = os.path.split(path)
    found = glob.glob(os.path.join(glob.escape(folder), name.replace("[", "[[]")))
    if not found:
        raise FileNotFoundError(f"{path}: no file matches this pattern")
    return sorted(found, key=lambda p: [(t, int(d or 0)) for t, d in re.findall(r"(\D*)(\d*)", p)])


def _mapped_file(x: Any) -> str | None:
    """The .npy file that an array maps as a whole, unchanged."""
    if not isinstance(x, np.memmap) or x.mode == "c" or not x.flags.c_contiguous or x.ndim != 2:
        return None
    name = x.filename
    if name is None or not str(name).endswith(".npy") or x.dtype not in _KEPT:
        return None
    try:
        whole = np.load(name, mmap_mode="r")
    except (OSError, ValueError):
        return None
    same = (whole.shape, whole.dtype, whole.offset) == (x.shape, x.dtype, x.offset)
    return str(name) if same and whole.flags.c_contiguous else None


def _batches(
    x: Any, vector_column: str | None, id_column: str | None
) -> Iterator[tuple[npt.NDArray[Any] | None, npt.NDArray[Any]]]:
    """Pairs of ids, or None, and rows."""
    if type(x).__module__.partition(".")[0] == "pyarrow":
        yield from _arrow(x, vector_column, id_column)
    elif hasattr(x, "__array__") or isinstance(x, (list, tuple)):
        array = numbers(x, "vectors")
        if array.ndim != 2:
            raise ValueError(f"vectors must have shape (n, dim), found {array.shape}")
        yield None, array
    elif isinstance(x, Iterable):
        for batch in x:
            if isinstance(batch, tuple):
                if len(batch) != 2:
                    raise TypeError("a batch must be an array or a pair (ids, vectors)")
                ids, rows = batch
                yield checked_ids(ids), numbers(rows, "vectors")
            elif type(batch).__module__.partition(".")[0] == "pyarrow":
                yield from _arrow(batch, vector_column, id_column)
            else:
                yield None, numbers(batch, "vectors")
    else:
        raise TypeError(
            "vectors must be a path or paths, an array, an iterator of batches or an Arrow table, "
            f"found {type(x).__name__}"
        )


def _write(
    out: Any, batches: Iterator[tuple[npt.NDArray[Any] | None, npt.NDArray[Any]]]
) -> npt.NDArray[np.uint64] | None:
    """Writes batches as one .npy file; returns the ids that came with them."""
    out.write(b"\0" * HEADER)
    shape: tuple[int, np.dtype[Any]] | None = None
    rows, all_ids = 0, list[npt.NDArray[np.uint64]]()
    for ids, batch in batches:
        if batch.ndim != 2:
            raise ValueError(f"a batch must have shape (n, dim), found {batch.shape}")
        native = batch.dtype.newbyteorder("<")
        kept = native if native in _KEPT else np.dtype("<f4")
        if shape is None:
            shape = batch.shape[1], kept
        if batch.shape[1] != shape[0]:
            problem = f"the batch at row {rows} has {batch.shape[1]} dims, the first has {shape[0]}"
            raise ValueError(problem)
        if kept != shape[1]:
            raise TypeError(f"the batch at row {rows} is {kept}, the first is {shape[1]}")
        if (ids is not None) != (len(all_ids) > 0) and rows > 0:
            raise TypeError("either every batch has ids or none")
        if ids is not None:
            if ids.shape != (len(batch),):
                raise ValueError(f"{len(batch)} rows need as many ids, found shape {ids.shape}")
            all_ids.append(checked_ids(ids))
        write_rows(out, batch, shape[1], rows)
        rows += len(batch)
    if shape is None or rows == 0:
        raise ValueError("there are no rows to build from")
    out.seek(0)
    out.write(header(rows, *shape))
    return np.concatenate(all_ids) if all_ids else None


def write_rows(out: Any, batch: npt.NDArray[Any], dtype: np.dtype[Any], before: int) -> None:
    step = max(1, _BATCH // max(1, batch.shape[1] * batch.itemsize))
    for start in range(0, len(batch), step):
        part = batch[start : start + step]
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(part, dtype=dtype)
        if batch.dtype.itemsize > dtype.itemsize and batch.dtype.kind == "f":
            grown = np.isinf(values) & np.isfinite(part)
            if grown.any():
                row, column = (int(i) for i in np.argwhere(grown)[0])
                raise ValueError(
                    f"row {before + start + row}: {part[row, column]} in column {column} is too "
                    "large for float32"
                )
        view = memoryview(values.reshape(-1).view(np.uint8))  # type: ignore[arg-type,unused-ignore]
        while view:
            view = view[out.write(view) :]


def header(rows: int, dim: int, dtype: np.dtype[Any]) -> bytes:
    """A .npy header of one length whatever the number of rows."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({rows}, {dim}), }}"
    return b"\x93NUMPY\x01\x00v\x00" + text.encode().ljust(HEADER - 11) + b"\n"


def _parquet(paths: list[str], vector_column: str | None, id_column: str | None) -> Iterator[Any]:
    import pyarrow.parquet

    for path in paths:
        with pyarrow.parquet.ParquetFile(path) as file:
            vectors = vector_column or _vector_column(file.schema_arrow)
            columns = [vectors] if id_column is None else [id_column, vectors]
            yield from file.iter_batches(batch_size=8192, columns=columns)


def _arrow(
    table: Any, vector_column: str | None, id_column: str | None
) -> Iterator[tuple[npt.NDArray[Any] | None, npt.NDArray[Any]]]:
    import pyarrow

    if isinstance(table, pyarrow.RecordBatch):
        table = pyarrow.Table.from_batches([table])
    if isinstance(table, pyarrow.RecordBatchReader):
        batches, schema = iter(table), table.schema
    elif isinstance(table, pyarrow.Table):
        batches, schema = iter(table.to_batches(max_chunksize=65536)), table.schema
    else:
        raise TypeError(
            f"expected a pyarrow Table or RecordBatchReader, found {type(table).__name__}"
        )
    name = vector_column or _vector_column(schema)
    for wanted in (name, id_column):
        if wanted is not None and wanted not in schema.names:
            raise ValueError(f"there is no column {wanted!r} among {schema.names}")
    for batch in batches:
        if batch.num_rows:
            ids = None
            if id_column is not None:
                ids = checked_ids(batch.column(id_column).to_numpy(zero_copy_only=False), id_column)
            yield ids, _rows(batch.column(name), name)


def _vector_column(schema: Any) -> str:
    import pyarrow.types as t

    def is_list(field: Any) -> bool:
        kind = field.type
        return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))

    lists = [field.name for field in schema if is_list(field)]
    if len(lists) != 1:
        raise ValueError(f"give vector_column: list columns are {lists}, all are {schema.names}")
    return str(lists[0])


def _rows(column: Any, name: str) -> npt.NDArray[Any]:
    """A list column as an array of rows."""
    values = column.flatten()
    if column.null_count or values.null_count:
        raise ValueError(f"column {name!r} holds nulls")
    if len(values) % len(column):
        raise ValueError(f"the lists of column {name!r} differ in length")
    dim = len(values) // len(column)
    if not hasattr(column.type, "list_size"):
        lengths = np.asarray(column.value_lengths())
        if (lengths != dim).any():
            raise ValueError(f"the lists of column {name!r} differ in length")
    return numbers(values.to_numpy(zero_copy_only=False), name).reshape(len(column), dim)


def read_ids(ids: Any, rows: int | None = None) -> npt.NDArray[np.uint64]:
    """External ids from an array, a .npy or a .u64bin file; every one must be different."""
    if isinstance(ids, (str, os.PathLike)):
        path = Path(os.fsdecode(ids))
        if path.suffix == ".u64bin":
            ids = _u64bin(path)
        elif path.suffix == ".npy":
            ids = np.load(path)
        else:
            raise ValueError(f"{path}: ids are read from .npy or .u64bin")
    found = checked_ids(ids)
    if found.ndim != 1:
        raise ValueError(f"ids must have one dimension, found shape {found.shape}")
    found = found[:rows]
    values, counts = np.unique(found, return_counts=True)
    if (counts > 1).any():
        twice = int(values[counts > 1][0])
        first, second = (int(row) for row in np.flatnonzero(found == twice)[:2])
        raise ValueError(f"id {twice} stands at rows {first} and {second}: each row needs its own")
    return found


def _u64bin(path: Path) -> npt.NDArray[np.uint64]:
    """A u32 count, a u32 1, then so many u64."""
    head = np.fromfile(path, dtype="<u4", count=2)
    held = path.stat().st_size - 8
    if len(head) < 2 or head[1] != 1 or int(head[0]) * 8 != held:
        says = "no header" if len(head) < 2 else f"{head[0]} rows of {head[1]} in its header"
        raise ValueError(f"{path}: {says}, and {max(held, 0)} bytes of ids after it")
    return np.fromfile(path, dtype="<u8", offset=8)
