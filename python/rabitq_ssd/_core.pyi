from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from ._arrays import SearchResult, SearchResultStats

__version__: str

class Error(Exception): ...
class BuildError(Error): ...
class OpenError(Error): ...
class SearchError(Error): ...

_Progress = Callable[[str, int, int], object] | None
_Pipeline = Literal["naive", "coalesced", "overlapped", "scheduled", "full", "fifo"]
_F32 = npt.NDArray[np.float32]
_U64 = npt.NDArray[np.uint64]

class Index:
    @overload
    def search(
        self,
        queries: npt.ArrayLike,
        k: int = 10,
        nprobe: int | None = None,
        recall: float | None = None,
        threads: int | None = None,
        alpha: float | None = None,
        epsilon: float | None = None,
        inflight: int | None = None,
        pipeline: _Pipeline | None = None,
        timeout: float | None = None,
        deterministic: bool = False,
        return_stats: Literal[False] = False,
    ) -> SearchResult: ...
    @overload
    def search(
        self,
        queries: npt.ArrayLike,
        k: int = 10,
        nprobe: int | None = None,
        recall: float | None = None,
        threads: int | None = None,
        alpha: float | None = None,
        epsilon: float | None = None,
        inflight: int | None = None,
        pipeline: _Pipeline | None = None,
        timeout: float | None = None,
        deterministic: bool = False,
        *,
        return_stats: Literal[True],
    ) -> SearchResultStats: ...
    @overload
    def search(
        self,
        queries: npt.ArrayLike,
        k: int = 10,
        nprobe: int | None = None,
        recall: float | None = None,
        threads: int | None = None,
        alpha: float | None = None,
        epsilon: float | None = None,
        inflight: int | None = None,
        pipeline: _Pipeline | None = None,
        timeout: float | None = None,
        deterministic: bool = False,
        return_stats: bool = False,
    ) -> SearchResult | SearchResultStats: ...
    def close(self) -> None: ...
    def info(self) -> dict[str, Any]: ...
    def verify(self, progress: _Progress = None) -> dict[str, Any]: ...
    @property
    def closed(self) -> bool: ...
    @property
    def path(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def ntotal(self) -> int: ...
    @property
    def nlist(self) -> int: ...
    @property
    def metric(self) -> Literal["l2", "ip", "cosine"]: ...
    @property
    def record(self) -> Literal["split", "f32", "u8", "sq8", "sq4"]: ...
    @property
    def prefix_dims(self) -> int: ...
    @property
    def bits(self) -> int: ...
    @property
    def resident_bytes(self) -> int: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Index: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def open_index(dir: str, io_backend: str, direct: str, io_timeout: float | None) -> Index: ...
def build(
    paths: list[str],
    out: str,
    options: dict[str, Any],
    *,
    rows: int | None = None,
    ids: _U64 | None = None,
    overwrite: bool = False,
    resume: bool = False,
    resumable: bool = True,
    progress: _Progress = None,
) -> tuple[int, int, float]: ...
def estimate(
    paths: list[str], dir: str, options: dict[str, Any], *, rows: int | None = None
) -> dict[str, Any]: ...
def estimate_shape(
    n: int, dim: int, dtype: str, dir: str, options: dict[str, Any]
) -> dict[str, Any]: ...
def info(dir: str) -> dict[str, Any]: ...
def verify(dir: str, progress: _Progress = None) -> dict[str, Any]: ...
def generate(
    out: str,
    n: int,
    dim: int,
    *,
    seed: int,
    dtype: str | None,
    spectrum: str,
    norms: str,
    queries: int,
    queries_out: str | None,
    threads: int | None,
    progress: _Progress,
) -> None: ...
def convert(
    paths: list[str],
    target: str,
    *,
    dtype: str | None,
    rounding: str,
    rows: int | None,
    progress: _Progress,
) -> dict[str, Any]: ...
def read(paths: list[str], *, rows: int | None = None, sample: int | None = None) -> _F32: ...
def read_truth(path: str) -> tuple[int, _U64, _F32 | None]: ...
def groundtruth(
    paths: list[str],
    queries: _F32,
    k: int,
    metric: str,
    *,
    rows: int | None,
    threads: int | None,
    out: str | None,
    progress: _Progress,
) -> tuple[_F32, npt.NDArray[np.int64]]: ...
def measure(
    index: Index,
    queries: _F32,
    truth: tuple[int, _U64, _F32 | None],
    *,
    k: int,
    nprobe: int | None,
    recalls: list[float],
    alpha: float | None,
    epsilon: float | None,
    inflight: int | None,
    pipeline: str,
    threads: int | None,
    rounds: int,
    warmup: bool,
) -> list[dict[str, Any]]: ...
def tune(
    index: Index,
    queries: _F32,
    truth: tuple[int, _U64, _F32 | None],
    *,
    with_self: bool,
    k: list[int],
    recalls: list[float],
    alpha: list[float],
    epsilon: list[float],
    threads: int | None,
    progress: _Progress,
) -> list[dict[str, Any]]: ...
