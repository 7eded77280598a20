"""Nearest-neighbour search over more vectors than fit in memory, on one machine with one NVMe disk.

    import numpy as np
    import rabitq_ssd

    index = rabitq_ssd.build(x, "my.index", memory="2GiB")
    distances, ids = index.search(queries, k=10, nprobe=64)

An index is a directory. `build` makes one from arrays, iterators, Arrow tables or vector files
larger than memory, `open` opens it, `Index.search` searches it, without the GIL, from any number of
threads.
"""

from ._api import build, convert, estimate, generate, info, open, verify
from ._arrays import SearchResult, SearchResultStats
from ._core import BuildError, Error, Index, OpenError, SearchError, __version__
from ._errors import SearchTimeoutError
from ._evaluate import bench, groundtruth, tune

__all__ = [
    "BuildError",
    "Error",
    "Index",
    "OpenError",
    "SearchError",
    "SearchResult",
    "SearchResultStats",
    "SearchTimeoutError",
    "__version__",
    "bench",
    "build",
    "convert",
    "estimate",
    "generate",
    "groundtruth",
    "info",
    "open",
    "tune",
    "verify",
]
