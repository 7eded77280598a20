"""Exact neighbours, measured settings and operating points."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _sources
from ._api import Metric, Path, Progress, check_callable, open
from ._arrays import SearchResult
from ._arrays import queries as as_queries


def groundtruth(
    x: Any,
    queries: Any,
    k: int = 100,
    metric: Metric = "l2",
    *,
    rows: int | None = None,
    threads: int | None = None,
    out: Path | None = None,
    progress: Progress = None,
) -> SearchResult:
    """Compute the exact neighbours of each query among the rows of ``x``.

    ``x`` and ``queries`` are arrays or vector files. Returns (distances, ids): float32 and int64
    arrays of shape (n, k), k at most the number of valid rows; ids are row numbers. ``out`` also
    writes them to a file that `bench` and ``rabitq-ssd bench`` read.

    >>> distances, ids = rabitq_ssd.groundtruth(x, queries, k=10)  # doctest: +SKIP
    """
    check_callable(progress)
    if k < 1:
        raise ValueError(f"k must be at least 1, found {k}")
    beside = (
        os.path.dirname(os.path.abspath(os.fspath(out)))
        if out is not None
        else tempfile.gettempdir()
    )
    target = None if out is None else os.fspath(out)
    with _sources.files(x, beside) as source:
        given = [*source.paths, *([queries] if isinstance(queries, (str, os.PathLike)) else [])]
        if target is not None and any(_same(path, target) for path in given):
            raise ValueError(f"{target} would overwrite what is read: choose another file")
        found = _core.groundtruth(
            source.paths,
            _read_queries(queries),
            k,
            metric,
            rows=rows,
            threads=threads,
            out=target,
            progress=progress,
        )
    return SearchResult(*found)


def bench(
    index: _core.Index | Path,
    queries: Any,
    groundtruth: Any,
    *,
    k: int | Sequence[int] = 10,
    nprobe: int | Sequence[int] | None = None,
    recall: float | Sequence[float] | None = None,
    threads: int | Sequence[int] | None = None,
    alpha: float | Sequence[float] | None = None,
    epsilon: float | None = None,
    inflight: int | None = None,
    pipeline: str = "full",
    rounds: int = 3,
    warmup: bool = False,
    ids: Any = None,
) -> list[dict[str, Any]]:
    """Measure recall, throughput, latency and reads of every combination of settings.

    ``groundtruth`` is a file, an array of ids of shape (n, k), or (distances, ids) as `groundtruth`
    returns them, in the ids of the index; or in row numbers if ``ids`` gives the external ids. With
    ``recall``, the least nprobe that reaches each is found and measured; a row whose recall is
    below its target_recall is out of reach. Returns one dict a row, with the names of
    ``rabitq-ssd bench --json``.

    >>> rabitq_ssd.bench("my.index", queries, truth, nprobe=[8, 16, 32])  # doctest: +SKIP
    """
    if nprobe is not None and recall is not None:
        raise ValueError("give nprobe or recall, not both")
    index = _opened(index)
    found = _read_queries(queries)
    truth = _truth(groundtruth, ids)
    recalls = [_share("recall", r) for r in _several(recall)]
    rows: list[dict[str, Any]] = []
    for at_threads in _several(threads) or [None]:
        for at_k in _several(k):
            for at_alpha in _several(alpha) or [None]:
                for at in [None] if recalls else _several(nprobe) or [None]:
                    rows += _core.measure(
                        index,
                        found,
                        truth,
                        k=at_k,
                        nprobe=at,
                        recalls=recalls,
                        alpha=at_alpha,
                        epsilon=epsilon,
                        inflight=inflight,
                        pipeline=pipeline,
                        threads=at_threads,
                        rounds=rounds,
                        warmup=warmup,
                    )
    return rows


def tune(
    index: _core.Index | Path,
    x: Any = None,
    *,
    queries: Any = None,
    groundtruth: Any = None,
    k: int | Sequence[int] = 10,
    recall: float | Sequence[float] = (0.8, 0.9, 0.95, 0.98, 0.99),
    alpha: float | Sequence[float] = (0.4, 1.0),
    epsilon: float | Sequence[float] = 1.9,
    sample: int = 1000,
    ids: Any = None,
    threads: int | None = None,
    progress: Progress = None,
) -> list[dict[str, Any]]:
    """Find the cheapest search for each recall, and keep it for ``search(recall=...)``.

    Measured on ``queries``, against ``groundtruth`` (as in `bench`) or the exact
    neighbours among the rows ``x`` the index was built from; without queries, on rows of ``x`` that
    are left out of their own neighbours. ``ids`` are the external ids the index was built with.
    Returns the points as dicts (k, target_recall, recall, nprobe, alpha, epsilon, qps, ...); a
    recall that visiting all lists does not reach is left out.

    >>> rabitq_ssd.tune("my.index", x, queries=queries, recall=[0.9, 0.95])  # doctest: +SKIP
    """
    check_callable(progress)
    index = _opened(index)
    ks = _several(k)
    if not ks or min(ks) < 1 or sample < 1:
        raise ValueError(f"k and sample must be at least 1, found k {k}, sample {sample}")
    with_self = False
    if groundtruth is not None:
        if queries is None:
            raise ValueError("groundtruth is of queries: give them as well")
        asked = _read_queries(queries)
        truth = _truth(groundtruth, ids)
    else:
        if x is None:
            raise ValueError("give the rows the index was built from, or queries and groundtruth")
        with_self = queries is None
        with _sources.files(x, tempfile.gettempdir()) as source:
            if queries is None:
                asked = _valid(_core.read(source.paths, sample=sample))
            else:
                asked = _read_queries(queries)[:sample]
            distances, found = _core.groundtruth(
                source.paths,
                asked,
                max(ks) + with_self,
                index.metric,
                rows=None,
                threads=threads,
                out=None,
                progress=progress,
            )
        if ids is None and index.info()["external_ids"]:
            raise ValueError("the index returns external ids: give ids")
        truth = _truth((distances, found), ids)
    return _core.tune(
        index,
        asked,
        truth,
        with_self=with_self,
        k=ks,
        recalls=[_share("recall", r) for r in _several(recall)],
        alpha=[_share("alpha", a) for a in _several(alpha)],
        epsilon=_several(epsilon),
        threads=threads,
        progress=progress,
    )


def _several(given: Any) -> list[Any]:
    """A value or several as a list; none for None."""
    if given is None:
        return []
    return list(given) if isinstance(given, Iterable) else [given]


def _same(path: Path, other: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def _share(name: str, value: float) -> float:
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, found {value}")
    return float(value)


def _opened(index: _core.Index | Path) -> _core.Index:
    return index if isinstance(index, _core.Index) else open(index)


def _read_queries(x: Any) -> npt.NDArray[np.float32]:
    if isinstance(x, (str, os.PathLike)):
        return _core.read([os.fspath(x)])
    return as_queries(x)


def _valid(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The rows an index can hold."""
    norms = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    kept = rows[np.isfinite(norms) & (norms > 0) & (norms < np.finfo(np.float32).max)]
    if not len(kept):
        raise ValueError("there are no queries to tune with")
    return np.ascontiguousarray(kept)


def _truth(
    given: Any, names: Any = None
) -> tuple[int, npt.NDArray[np.uint64], npt.NDArray[np.float32] | None]:
    """Ground truth as k, ids and distances, if those are known; both flat. With ``names``, what is
    given are row numbers, and these are the ids of the rows."""
    k, ids, scores = _flat_truth(given)
    if names is None:
        return k, ids, scores
    known = _sources.read_ids(names)
    if ids.size and int(ids.max()) >= len(known):
        raise ValueError(f"ids has {len(known)} ids, none for row {int(ids.max())}")
    return k, known[ids], scores


def _flat_truth(
    given: Any,
) -> tuple[int, npt.NDArray[np.uint64], npt.NDArray[np.float32] | None]:
    if isinstance(given, (str, os.PathLike)):
        return _core.read_truth(os.fspath(given))
    distances, ids = given if isinstance(given, tuple) else (None, given)
    ids = np.asarray(ids)
    if ids.ndim != 2 or ids.dtype.kind not in "iu" or ids.shape[1] == 0:
        raise ValueError(f"ground truth must be ids of shape (n, k), found {ids.dtype} {ids.shape}")
    flat = np.ascontiguousarray(ids, dtype=np.uint64).reshape(-1)
    if distances is None:
        return ids.shape[1], flat, None
    scores = np.ascontiguousarray(distances, dtype=np.float32)
    if scores.shape != ids.shape:
        raise ValueError(f"ids have shape {ids.shape}, distances {scores.shape}")
    return ids.shape[1], flat, scores.reshape(-1)
