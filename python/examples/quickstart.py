"""Quickstart, in cells as notebooks have them: run it whole, or cell by cell in an editor."""

# %% [markdown]
# # rabitq-ssd in five minutes
# An index is a directory: codes of a few dozen bytes a row are in RAM, the rest is on disk.

# %%
import tempfile
from pathlib import Path

import numpy as np
import rabitq_ssd

folder = tempfile.TemporaryDirectory()
here = Path(folder.name)

# %% [markdown]
# ## Rows
# Here 20,000 synthetic rows that look like embeddings; yours may be an array, a memory map, an
# iterator of batches, an Arrow table, or files.

# %%
rabitq_ssd.generate(here / "base.fbin", 20_000, 128, queries_out=here / "queries.fbin", queries=200)
rabitq_ssd.convert(here / "queries.fbin", here / "queries.npy")
queries = np.load(here / "queries.npy")

# %% [markdown]
# ## What will it take?

# %%
needs = rabitq_ssd.estimate(here / "base.fbin", dir=here)
print(
    f"{needs['resident_bytes'] / 2**20:.1f} MiB in RAM, {needs['disk_bytes'] / 2**20:.1f} on disk"
)

# %% [markdown]
# ## Build


# %%
def tell(stage: str, done: int, total: int) -> None:
    if done == total:
        print(f"  {stage} done")


index = rabitq_ssd.build(here / "base.fbin", here / "index", progress=tell)
print(index)

# %% [markdown]
# ## Search
# `nprobe` is the number of lists to visit: more find more, and take longer.

# %%
distances, ids = index.search(queries, k=10, nprobe=16)
print("shape", ids.shape, "nearest to the first query", ids[0, :3])

one = index.search(queries[0], k=3, return_stats=True)
print("one query:", one.ids, "pages read:", one.stats["pages"])

# %% [markdown]
# ## How good is it?
# Ground truth is exact; `bench` compares with it.

# %%
truth = rabitq_ssd.groundtruth(here / "base.fbin", queries, k=10)
for row in rabitq_ssd.bench(index, queries, truth, nprobe=[2, 8, 20]):
    print(f"nprobe {row['nprobe']:3}  recall {row['recall']:.3f}  {row['qps']:8.0f} queries/s")

# %% [markdown]
# ## Ask for a recall instead
# `tune` measures once and keeps the points in the index.

# %%
rabitq_ssd.tune(index, queries=queries, groundtruth=truth, recall=[0.8, 0.9])
found = index.search(queries, k=10, recall=0.9)
hits = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.ids, truth.ids)])
print(f"asked for 0.9, got {hits:.3f}")

# %%
index.close()
folder.cleanup()
