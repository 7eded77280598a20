"""An index with the methods of ``faiss.IndexIVF``, for programs that are written for faiss.

    from rabitq_ssd import faiss

    index = faiss.IndexRaBitQSSD(d, nlist=1024)
    index.train(x)
    index.add(x)
    index.nprobe = 64
    D, I = index.search(queries, 10)
    faiss.write_index(index, "my.index")

What differs from faiss: rows that are added are kept in a temporary file, and the first search
builds the index of them all, so that memory stays bounded; a search after another `add` builds it
anew. Training happens in the build. Missing results have distance inf or -inf, and id -1 as there.
Rows cannot be removed or reconstructed. A file of `write_index` is a directory.

    add ─▶ rows.npy in a temporary folder ─▶ search: build ─▶ index
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _api, _core, _sources
from ._arrays import ids as checked_ids
from ._arrays import numbers

__all__ = [
    "METRIC_INNER_PRODUCT",
    "METRIC_L2",
    "IndexRaBitQSSD",
    "SearchParametersIVF",
    "normalize_L2",
    "read_index",
    "write_index",
]

METRIC_INNER_PRODUCT = 0
METRIC_L2 = 1

_METRICS: dict[int, _api.Metric] = {METRIC_INNER_PRODUCT: "ip", METRIC_L2: "l2"}
_Path = Union[str, "os.PathLike[str]"]


class SearchParametersIVF:
    """Parameters of one search, instead of those of the index."""

    def __init__(self, nprobe: int | None = None) -> None:
        self.nprobe = nprobe


class IndexRaBitQSSD:
    """Rows of ``d`` values on disk, searched by ``nprobe`` of ``nlist`` lists.

    Parameters
    ----------
    d : int
        Values in a row.
    nlist : int, optional
        Inverted lists; by default as `rabitq_ssd.build` chooses.
    metric : METRIC_L2 or METRIC_INNER_PRODUCT
        Cosine is the inner product of rows and queries that `normalize_L2` scaled.
    path : path, optional
        Directory of the index; by default a temporary one, which goes with this object.
    **options
        Of `rabitq_ssd.build`: memory, record, bits, build_memory, threads, progress, ...

    Examples
    --------
    >>> import numpy as np
    >>> from rabitq_ssd import faiss
    >>> x = np.random.default_rng(0).standard_normal((1000, 32), dtype=np.float32)
    >>> index = faiss.IndexRaBitQSSD(32)
    >>> index.add(x)
    >>> D, I = index.search(x[:3], 1)
    >>> I.ravel().tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        d: int,
        nlist: int | None = None,
        metric: int = METRIC_L2,
        *,
        path: _Path | None = None,
        **options: Any,
    ) -> None:
        if d < 1:
            raise ValueError(f"d must be at least 1, found {d}")
        if metric not in _METRICS:
            raise ValueError(f"metric must be METRIC_L2 or METRIC_INNER_PRODUCT, found {metric}")
        if path is not None and os.path.lexists(path):
            raise FileExistsError(f"{os.fspath(path)} exists already; read_index opens an index")
        self.d = d
        self.metric_type = metric
        self.nprobe = 128
        self.verbose = False
        self._options = options
        self._nlist = nlist
        self._path = None if path is None else os.path.abspath(path)
        self._lock = threading.Lock()
        self._rows: _Rows | None = None
        self._index: _core.Index | None = None

    @property
    def is_trained(self) -> bool:
        """Always: lists are trained when the index is built."""
        return True

    @property
    def ntotal(self) -> int:
        """Rows."""
        if self._rows is not None:
            return self._rows.count
        return 0 if self._index is None else self._index.n

    @property
    def nlist(self) -> int | None:
        """Lists, those asked for as long as the index is not built."""
        return self._nlist if self._index is None else self._index.nlist

    def train(self, x: npt.ArrayLike) -> None:
        """Check the shape of ``x``: lists are trained on the rows that are added."""
        self._checked(x)

    def add(self, x: npt.ArrayLike) -> None:
        """Add rows, an array of shape (n, d), whose ids go on from the number of rows."""
        with self._lock:
            self._spool().add(self._checked(x), None)

    def add_with_ids(self, x: npt.ArrayLike, ids: npt.ArrayLike) -> None:
        """Add rows with ids that are not negative, each different."""
        rows, names = self._checked(x), checked_ids(ids)
        if names.shape != (len(rows),):
            raise ValueError(f"{len(rows)} rows need as many ids, found shape {names.shape}")
        with self._lock:
            self._spool().add(rows, names)

    def search(
        self, x: npt.ArrayLike, k: int, *, params: Any = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
        """Find the ``k`` nearest rows of each query.

        ``x`` has shape (n, d); returns (D, I), float32 and int64 of shape (n, k). ``params`` is any
        object with an attribute nprobe, as SearchParametersIVF. Raises ValueError if the shape
        differs, what `rabitq_ssd.build` raises if the index is built now, and RuntimeError if there
        are no rows.
        """
        nprobe = getattr(params, "nprobe", None) or self.nprobe
        queries = numbers(x, "queries")
        if queries.ndim != 2:
            raise ValueError(f"queries must have shape (n, {self.d}), found {queries.shape}")
        found = self.built().search(queries, k=k, nprobe=nprobe)
        return found.distances, found.ids

    def built(self) -> _core.Index:
        """The index of all rows so far as `rabitq_ssd.open` gives it, built if need be."""
        with self._lock:
            if self._index is not None:
                return self._index
            if self._rows is None or self._rows.count == 0:
                raise RuntimeError("there are no rows: call add first")
            target = self._path or os.path.join(self._rows.folder, "index")
            self._index = _api.build(
                self._rows.finished(),
                target,
                metric=_METRICS[self.metric_type],
                nlist=self._nlist,
                ids=self._rows.names(),
                overwrite=self._rows.built,
                **self._options,
            )
            self._rows.built = True
            return self._index

    def reset(self) -> None:
        """Forget all rows."""
        with self._lock:
            if self._rows is None and self._index is not None:
                raise RuntimeError("an index that was read is not changed")
            built = self._rows is not None and self._rows.built
            self._rows, self._index = None, None
            if built and self._path is not None:
                shutil.rmtree(self._path)

    def _checked(self, x: npt.ArrayLike) -> npt.NDArray[Any]:
        rows = numbers(x, "vectors")
        if rows.ndim != 2 or rows.shape[1] != self.d:
            raise ValueError(f"vectors must have shape (n, {self.d}), found {rows.shape}")
        return rows

    def _spool(self) -> _Rows:
        """The rows to add to; what was built of fewer is out of date."""
        if self._rows is None:
            if self._index is not None:
                raise RuntimeError("an index that was read is not added to: build it of all rows")
            beside = None if self._path is None else os.path.dirname(self._path)
            self._rows = _Rows(self.d, beside)
        self._index = None
        return self._rows


class _Rows:
    """Rows and their ids, until the index is built of them; the folder goes with the object."""

    def __init__(self, d: int, beside: str | None) -> None:
        self.folder = tempfile.mkdtemp(prefix=".rabitq-ssd.", dir=beside)
        weakref.finalize(self, _remove, self.folder, os.getpid())
        self.count = 0
        self.built = False
        self._d = d
        self._path = os.path.join(self.folder, "rows.npy")
        self._ids: list[npt.NDArray[np.uint64]] = []
        self._named = False
        with open(self._path, "wb") as out:
            out.write(b"\0" * _sources.HEADER)

    def add(self, rows: npt.NDArray[Any], names: npt.NDArray[np.uint64] | None) -> None:
        with open(self._path, "r+b", buffering=0) as out:
            # What a failed addition left at the end is overwritten.
            out.truncate(_sources.HEADER + 4 * self._d * self.count)
            out.seek(0, os.SEEK_END)
            _sources.write_rows(out, rows, np.dtype("<f4"), self.count)
        self._named |= names is not None
        if names is None:
            names = np.arange(self.count, self.count + len(rows), dtype=np.uint64)
        self._ids.append(names)
        self.count += len(rows)

    def finished(self) -> str:
        """The rows as a vector file."""
        with open(self._path, "r+b") as out:
            out.write(_sources.header(self.count, self._d, np.dtype("<f4")))
        return self._path

    def names(self) -> npt.NDArray[np.uint64] | None:
        return np.concatenate(self._ids) if self._named else None


def _remove(folder: str, owner: int) -> None:
    """Removes a temporary folder, unless this is a fork of the process that uses it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def normalize_L2(x: npt.NDArray[np.float32]) -> None:
    """Scale the rows of ``x`` to length 1, in place; rows of zeros stay."""
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    np.divide(x, norms, out=x, where=norms > 0)


def write_index(index: IndexRaBitQSSD, fname: _Path) -> None:
    """Copy the index to the directory ``fname``, which must not exist. Builds it if need be."""
    target = os.path.abspath(fname)
    if os.path.lexists(target):
        raise FileExistsError(f"{target} exists already")
    with tempfile.TemporaryDirectory(prefix=".rabitq-ssd.", dir=os.path.dirname(target)) as beside:
        copy = os.path.join(beside, "index")
        shutil.copytree(index.built().path, copy)
        os.rename(copy, target)


def read_index(fname: _Path) -> IndexRaBitQSSD:
    """Open the index in the directory ``fname``, made by `write_index` or by `rabitq_ssd.build`.

    It can be searched, not added to. Raises FileNotFoundError or OpenError.
    """
    opened = _api.open(fname)
    metric = METRIC_L2 if opened.metric == "l2" else METRIC_INNER_PRODUCT
    index = IndexRaBitQSSD(opened.dim, metric=metric)
    index._index = opened
    return index
