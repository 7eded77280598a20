"""Arrays as the native half takes them, and the tuples it gives back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class SearchResult(NamedTuple):
    """Neighbours of a batch, nearest first: two arrays of shape (n, k), or (k,) for one query."""

    distances: npt.NDArray[np.float32]
    ids: npt.NDArray[Any]


class SearchResultStats(NamedTuple):
    """The same, with counters summed over the queries."""

    distances: npt.NDArray[np.float32]
    ids: npt.NDArray[Any]
    stats: dict[str, int]


def numbers(x: Any, what: str) -> npt.NDArray[Any]:
    """Whatever NumPy makes an array of numbers of; a TypeError for the rest."""
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{what} must be an array of real numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        found = "rows of different lengths or no numbers" if array.dtype == object else array.dtype
        raise TypeError(f"{what} must be an array of real numbers, found {found}")
    return array


def queries(x: Any) -> npt.NDArray[np.float32]:
    """Queries as C-contiguous, aligned, native float32."""
    array = numbers(x, "queries")
    with np.errstate(over="ignore"):
        return np.require(array, dtype=np.float32, requirements=["C", "A"])


def ids(x: Any, what: str = "ids") -> npt.NDArray[np.uint64]:
    """Ids as uint64; a ValueError where one is negative."""
    array = np.asarray(x)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} must be whole numbers, found {array.dtype}")
    if array.dtype.kind == "i" and array.size and int(array.min()) < 0:
        raise ValueError(f"{what} must not be negative, found {int(array.min())}")
    return np.ascontiguousarray(array, dtype=np.uint64)
