"""What several test files need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

DIM = 24


def normal(n: int, dim: int = DIM, seed: int = 7) -> Any:
    return np.random.default_rng(seed).standard_normal((n, dim), dtype=np.float32)


def exact(rows: Any, queries: Any, k: int) -> Any:
    """Row numbers of the nearest rows, by NumPy."""
    distances = ((queries[:, None, :].astype(float) - rows[None].astype(float)) ** 2).sum(-1)
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


_CHILD = """
import signal, sys
import numpy as np
import rabitq_ssd
signal.signal(signal.SIGINT, signal.default_int_handler)
def ready(*_):
    global ready_said
    if not ready_said:
        ready_said = True
        print("ready", flush=True)
ready_said = False
try:
{work}
    print("done")
except KeyboardInterrupt:
    print("interrupted")
"""


def interrupt(work: str, folder: Path, after: float = 0.2) -> tuple[str, float]:
    """Runs ``work`` in a process that gets Ctrl-C some time after it has called ``ready()``.
    Returns what it said last, and the seconds from the signal to its end."""
    code = _CHILD.format(work="\n".join("    " + line for line in work.strip().splitlines()))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=folder, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "ready"
        time.sleep(after)
        sent = time.monotonic()
        os.kill(child.pid, signal.SIGINT)
        said = child.stdout.read().strip()
        child.wait(timeout=60)
        return said, time.monotonic() - sent
