"""Indexes and vector files: arguments in any form, the native half behind them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal, Optional, Union

import numpy as np

from . import _core, _sources
from ._sizes import Size, size

Path = Union[str, "os.PathLike[str]"]
Progress = Optional[Callable[[str, int, int], object]]
Metric = Literal["l2", "ip", "cosine"]
Record = Literal["split", "f32", "u8", "sq8", "sq4"]


def build(
    x: Any,
    dir: Path,
    *,
    metric: Metric = "l2",
    nlist: int | None = None,
    bits: int | None = None,
    record: Record | None = None,
    preset: Literal["default", "paper"] | None = None,
    prefix_dims: int | None = None,
    memory: Size | None = None,
    coarse: Literal["auto", "irq", "hnsw", "flat"] | None = None,
    bound: Literal["per-vector", "paper"] | None = None,
    list_order: Literal["locality", "distance"] | None = None,
    centroids: Literal["auto", "i8", "f32"] | None = None,
    seed: int = 42,
    threads: int | None = None,
    build_memory: Size | None = None,
    ids: Any = None,
    rows: int | None = None,
    vector_column: str | None = None,
    id_column: str | None = None,
    on_invalid: Literal["error", "skip"] = "error",
    overwrite: bool = False,
    resume: bool = False,
    progress: Progress = None,
) -> _core.Index:
    """Build an index of the rows of ``x`` in the directory ``dir``, and open it.

    Parameters
    ----------
    x : path, paths, array, iterator of batches, or Arrow table
        Vector files (.fbin .u8bin .i8bin .f16bin .fvecs .bvecs .npy, patterns as ``part*.fbin``) or
        .parquet; an array of shape (n, dim) of any layout; an iterator of such arrays or of pairs
        (ids, array); a pyarrow Table, RecordBatch or RecordBatchReader with a list column.
        float32, float16, int8 and uint8 keep their type, other numbers become float32. What is in
        no vector file is written to a temporary one beside ``dir`` first, as large as the rows.
    dir : path
        Directory of the index. It appears when it is complete, or not at all.
    metric : {"l2", "ip", "cosine"}
        Squared Euclidean distance, inner product or cosine.
    nlist : int, optional
        Inverted lists; by default about n / 64, at most 8 times the square root of n.
    bits : int, optional
        Bits per dim of "split" records, 2 to 9; by default 9.
    record : {"split", "f32", "u8", "sq8", "sq4"}, optional
        What a record on disk holds: codes, or the raw vector, which makes re-ranking exact.
    preset : {"default", "paper"}, optional
        What options that are not given stand for.
    prefix_dims, memory : int; int or str, optional
        Sign bits of each row in RAM, a multiple of 64; or the most that leave the index in RAM
        within a size: bytes, or "2GiB". By default all.
    coarse, bound, seed : optional
        How lists are found, which bound the codes have, and the seed of everything random.
    list_order : {"locality", "distance"}, optional
        How records are packed into pages: near vectors together, which reads fewer pages, or by
        distance to the centroid.
    centroids : {"auto", "i8", "f32"}, optional
        What a centroid is in RAM; by default a byte a value unless lists are too tight for it.
    threads : int, optional
        By default all cores. The index does not depend on it.
    build_memory : int or str, optional
        Most memory the build holds; by default 60 % of the machine's.
    ids : array of whole numbers, or path of .npy or .u64bin, optional
        Ids to return instead of row numbers.
    rows : int, optional
        Only the first rows of vector files.
    vector_column, id_column : str, optional
        Columns of an Arrow table or .parquet file; by default its only list column, and no ids.
    on_invalid : {"error", "skip"}
        What to do with rows that hold NaN or infinities.
    overwrite : bool
        Replace an index at ``dir``, once the new one is complete.
    resume : bool
        Go on from where a build of the same files and options to the same ``dir`` was stopped.
    progress : callable(stage: str, done: int, total: int), optional
        Called now and then, from another thread. An exception in it stops the build.

    Returns
    -------
    Index

    Raises
    ------
    FileExistsError
        If there is something at ``dir``.
    FileNotFoundError
        If a vector file is missing.
    ValueError
        If an option cannot work, shapes differ, or a row is invalid (it is named).
    BuildError
        If a file is damaged or cannot be written, or the disk is too small.

    Examples
    --------
    >>> import numpy as np, rabitq_ssd, tempfile
    >>> x = np.random.default_rng(0).standard_normal((1000, 32), dtype=np.float32)
    >>> index = rabitq_ssd.build(x, tempfile.mkdtemp() + "/my.index")
    >>> index.search(x[:3], k=1).ids.ravel().tolist()
    [0, 1, 2]
    """
    target = os.fspath(dir)
    if os.path.lexists(target) and not overwrite:
        raise FileExistsError(f"{target} exists already; replace it with overwrite=True")
    resumable = _sources.in_files(x)
    if resume and not resumable:
        raise ValueError("resume needs vector files: other rows cannot be told to be the same")
    options = _options(
        metric=metric,
        nlist=nlist,
        bits=bits,
        record=record,
        preset=preset,
        prefix_dims=prefix_dims,
        memory=size("memory", memory),
        coarse=coarse,
        bound=bound,
        list_order=list_order,
        centroids=centroids,
        seed=seed,
        threads=threads,
        build_memory=size("build_memory", build_memory),
        on_invalid=on_invalid,
    )
    check_callable(progress)
    beside = os.path.dirname(os.path.abspath(target))
    with _sources.files(x, beside, vector_column, id_column) as source:
        if ids is not None and source.ids is not None:
            raise ValueError("the rows came with ids, and ids were given as well")
        given = source.ids if ids is None else ids
        _core.build(
            source.paths,
            target,
            options,
            rows=rows,
            ids=None if given is None else _sources.read_ids(given, rows),
            overwrite=overwrite,
            resume=resume,
            resumable=resumable,
            progress=progress,
        )
    return open(target)


def open(
    dir: Path,
    *,
    io_backend: Literal["auto", "io_uring", "aio", "pread", "memory"] = "auto",
    direct: Literal["auto", "on", "off"] = "auto",
    io_timeout: float | None = 30.0,
) -> _core.Index:
    """Open the index in ``dir``, checking what is held in RAM against its checksums.

    Parameters
    ----------
    dir : path
    io_backend : {"auto", "io_uring", "aio", "pread", "memory"}
        How pages are read.
    direct : {"auto", "on", "off"}
        Whether reads go around the page cache.
    io_timeout : float or None
        Seconds a search waits for a disk that answers nothing; None waits for ever.

    Raises
    ------
    FileNotFoundError
        If there is nothing at ``dir``.
    OpenError
        If it is no index, of another format, or damaged.

    Examples
    --------
    >>> with rabitq_ssd.open("my.index") as index:  # doctest: +SKIP
    ...     distances, ids = index.search(queries, k=10)
    """
    # It is opened again after a fork and from a pickle, wherever the process is by then.
    return _core.open_index(os.path.abspath(dir), io_backend, direct, io_timeout)


def info(dir: Path) -> dict[str, Any]:
    """Describe the index in ``dir`` without reading what searches hold in RAM.

    Returns a dict as ``rabitq-ssd info --json`` prints it: n, dim, metric, nlist, resident_bytes,
    list_sizes, ... Raises FileNotFoundError or OpenError.

    >>> rabitq_ssd.info("my.index")["nlist"]  # doctest: +SKIP
    """
    return _core.info(os.fspath(dir))


def verify(dir: Path, progress: Progress = None) -> dict[str, Any]:
    """Compare every byte that searches of the index in ``dir`` rest on with its checksums.

    Returns a dict: ok, problem, and files, each with name, bytes, ok, problem and bad_pages.
    Raises FileNotFoundError or OpenError where there is nothing to compare with.

    >>> rabitq_ssd.verify("my.index")["ok"]  # doctest: +SKIP
    """
    check_callable(progress)
    return _core.verify(os.fspath(dir), progress)


def estimate(
    x: Any = None,
    *,
    n: int | None = None,
    dim: int | None = None,
    dtype: Literal["f32", "f16", "u8", "i8"] = "f32",
    dir: Path = ".",
    rows: int | None = None,
    memory: Size | None = None,
    build_memory: Size | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Say what an index and its build will take: RAM, disk, and time by a short probe.

    ``x`` is a vector file or several, or an array, of which only shape and type matter; or give
    ``n``, ``dim`` and ``dtype``. ``dir`` is a folder on the disk it is to be on. Options are those
    of `build`. Returns a dict: plan fields as resident_bytes and disk_bytes, peak_memory_bytes,
    scratch_bytes, seconds by stage, total_seconds, ... Raises ValueError for options that cannot
    work.

    >>> rabitq_ssd.estimate(n=10**9, dim=128, dtype="u8", memory="32GiB")  # doctest: +SKIP
    """
    known = {"metric", "nlist", "bits", "record", "preset", "prefix_dims", "coarse", "bound"}
    unknown = set(options) - known - {"list_order", "centroids", "seed", "threads", "on_invalid"}
    if unknown:
        raise TypeError(f"estimate has no argument {min(unknown)!r}")
    sizes = {"memory": size("memory", memory), "build_memory": size("build_memory", build_memory)}
    checked = _options(**options, **sizes)
    if x is not None and (n is not None or dim is not None):
        raise ValueError("give vectors, or n and dim")
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        if len(x.shape) != 2:
            raise ValueError(f"vectors must have shape (n, dim), found {tuple(x.shape)}")
        (n, dim) = x.shape
        n = n if rows is None else min(n, rows)
        names = {"float16": "f16", "uint8": "u8", "int8": "i8"}
        return _core.estimate_shape(
            n, dim, names.get(np.dtype(x.dtype).name, "f32"), os.fspath(dir), checked
        )
    if x is None:
        if n is None or dim is None:
            raise ValueError("give vectors, or n and dim")
        return _core.estimate_shape(n, dim, dtype, os.fspath(dir), checked)
    with _sources.files(x, os.fspath(dir)) as source:
        return _core.estimate(source.paths, os.fspath(dir), checked, rows=rows)


def generate(
    out: Path,
    n: int,
    dim: int,
    *,
    queries_out: Path | None = None,
    queries: int = 1000,
    seed: int = 42,
    dtype: Literal["f32", "u8"] | None = None,
    spectrum: Literal["power", "flat"] = "power",
    norms: Literal["unit", "spread"] = "unit",
    threads: int | None = None,
    progress: Progress = None,
) -> dict[str, Any]:
    """Write synthetic vectors shaped like embeddings to ``out``, and queries to ``queries_out``.

    The same arguments give the same file. Returns a dict: out, n, dim, bytes, queries_out.

    >>> rabitq_ssd.generate("base.fbin", 100_000, 96, queries_out="queries.fbin")  # doctest: +SKIP
    """
    check_callable(progress)
    for name, value in (("n", n), ("dim", dim), ("queries", queries)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, found {value}")
    out, also = os.fspath(out), None if queries_out is None else os.fspath(queries_out)
    if also is not None and os.path.realpath(out) == os.path.realpath(also):
        raise ValueError(f"out and queries_out name the same file: {out}")
    _core.generate(
        out,
        n,
        dim,
        seed=seed,
        dtype=dtype,
        spectrum=spectrum,
        norms=norms,
        queries=queries,
        queries_out=also,
        threads=threads,
        progress=progress,
    )
    return {"out": out, "n": n, "dim": dim, "bytes": os.path.getsize(out), "queries_out": also}


def convert(
    x: Any,
    dst: Path,
    *,
    dtype: Literal["f32", "f16", "u8", "i8"] | None = None,
    rounding: Literal["exact", "nearest", "clamp"] = "exact",
    rows: int | None = None,
    progress: Progress = None,
) -> dict[str, Any]:
    """Copy the rows of ``x``, in any form that `build` takes, to a vector file.

    ``dtype`` is by default what the extension says, for .npy the type of ``x``. Values that do not
    fit are an error unless ``rounding`` allows them. Returns a dict: n, dim, dtype, bytes.

    >>> rabitq_ssd.convert(array, "base.fbin")  # doctest: +SKIP
    """
    check_callable(progress)
    target = os.fspath(dst)
    with _sources.files(x, os.path.dirname(os.path.abspath(target))) as source:
        if any(os.path.realpath(path) == os.path.realpath(target) for path in source.paths):
            raise ValueError(f"{target} would overwrite what is read: choose another file")
        done = _core.convert(
            source.paths, target, dtype=dtype, rounding=rounding, rows=rows, progress=progress
        )
    return {**done, "bytes": os.path.getsize(target)}


def _options(**given: Any) -> dict[str, Any]:
    """Options of a build, those that were given."""
    if given.get("prefix_dims") is not None and given.get("memory") is not None:
        raise ValueError("give prefix_dims or memory, not both")
    if given.get("preset") not in (None, "default", "paper"):
        raise ValueError(f"preset: unknown {given['preset']!r}, expected one of default, paper")
    return {name: value for name, value in given.items() if value is not None}


def check_callable(progress: Any) -> None:
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be callable, found {type(progress).__name__}")
