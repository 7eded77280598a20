"""A million rows of 768 values in a memory-mapped file, indexed and searched in little memory.

python memmap_1m.py                     3 GB of vectors in ./memmap-1m
python memmap_1m.py --rows 100000 --folder /mnt/nvme/trial
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import rabitq_ssd

BATCH = 10_000


def clusters(rows: int, dim: int) -> Iterator[npt.NDArray[np.float32]]:
    """Rows around a thousand centres, as embeddings of similar texts lie."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((1000, dim), dtype=np.float32)
    for start in range(0, rows, BATCH):
        count = min(BATCH, rows - start)
        near = centres[rng.integers(len(centres), size=count)]
        yield near + np.float32(0.7) * rng.standard_normal((count, dim), dtype=np.float32)


def main() -> None:
    options = argparse.ArgumentParser(description="Index and search a memory-mapped file")
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--dim", type=int, default=768)
    options.add_argument("--folder", type=Path, default=Path("memmap-1m"))
    options.add_argument("--build-memory", default="1GiB")
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)

    started = time.monotonic()
    path = given.folder / "vectors.npy"
    header = {"descr": "<f4", "fortran_order": False, "shape": (given.rows, given.dim)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for batch in clusters(given.rows, given.dim):
            batch.tofile(file)
    print(f"wrote {path.stat().st_size / 1e9:.2f} GB in {time.monotonic() - started:.0f} s")

    # A map of a whole .npy file is read from the file: nothing is copied.
    started = time.monotonic()
    mapped = np.load(path, mmap_mode="r")
    index = rabitq_ssd.build(
        mapped, given.folder / "index", build_memory=given.build_memory, overwrite=True
    )
    print(f"built in {time.monotonic() - started:.0f} s within {given.build_memory}: {index}")
    print(f"in RAM: {index.resident_bytes / 1e6:.0f} MB of {path.stat().st_size / 1e6:.0f}")

    rng = np.random.default_rng(1)
    picked = np.sort(rng.integers(given.rows, size=1000))
    queries = mapped[picked] + 0.1 * rng.standard_normal((1000, given.dim), dtype=np.float32)
    started = time.monotonic()
    found = index.search(queries, k=10, nprobe=32)
    seconds = time.monotonic() - started
    first = np.mean(found.ids[:, 0] == picked)
    print(f"1000 queries in {seconds:.2f} s; the row they came from is first in {first:.1%}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"at most {peak / 1e6:.0f} MB of memory were held")


if __name__ == "__main__":
    main()
