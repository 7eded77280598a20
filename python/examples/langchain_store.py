"""A LangChain vector store over an index that is written once.

    store = RabitqSsdStore.from_texts(texts, embedding, folder="texts")     # embed, build
    store = RabitqSsdStore("texts", embedding)                              # open
    store.similarity_search("question", k=4)

Texts cannot be added to it or deleted, which LangChain allows: `add_texts` raises
NotImplementedError.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import rabitq_ssd
from documents import Documents
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import VectorStore

BATCH = 256


class RabitqSsdStore(VectorStore):
    """The index and the texts in a folder; scores are cosines, higher is nearer."""

    def __init__(self, folder: str, embedding: Embeddings, nprobe: int = 64) -> None:
        self._index = rabitq_ssd.open(os.path.join(folder, "index"))
        self._documents = Documents(os.path.join(folder, "documents.jsonl"))
        self._embedding = embedding
        self._nprobe = nprobe

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: Embeddings,
        metadatas: Iterable[dict[str, Any]] | None = None,
        *,
        ids: Iterable[str] | None = None,
        folder: str,
        **build: Any,
    ) -> RabitqSsdStore:
        """Embeds a batch at a time: neither texts nor embeddings need to fit in memory."""
        os.makedirs(folder)
        documents = Documents.create(os.path.join(folder, "documents.jsonl"))
        known = iter(metadatas) if metadatas is not None else None
        names = iter(ids) if ids is not None else None

        def rows() -> Iterator[np.ndarray]:
            batch: list[str] = []
            for text in texts:
                batch.append(text)
                if len(batch) == BATCH:
                    yield embedded(batch)
                    batch = []
            if batch:
                yield embedded(batch)

        def embedded(batch: list[str]) -> np.ndarray:
            documents.extend(
                {
                    "text": text,
                    "metadata": next(known) if known else {},
                    "id": next(names) if names else None,
                }
                for text in batch
            )
            return np.asarray(embedding.embed_documents(batch), dtype=np.float32)

        path = os.path.join(folder, "index")
        rabitq_ssd.build(rows(), path, metric="cosine", **build).close()
        return cls(folder, embedding)

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return self._nearest(self._embedding.embed_query(query), k, **kwargs)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        return [document for document, _ in self._nearest(embedding, k, **kwargs)]

    def _nearest(
        self, query: list[float], k: int, nprobe: int | None = None, **_: Any
    ) -> list[tuple[Document, float]]:
        found = self._index.search(query, k=k, nprobe=nprobe or self._nprobe)
        return [
            (self._document(int(row)), float(cosine))
            for cosine, row in zip(found.distances, found.ids)
            if row >= 0
        ]

    def _document(self, row: int) -> Document:
        kept = self._documents[row]
        return Document(page_content=kept["text"], metadata=kept["metadata"], id=kept["id"])

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: (cosine + 1) / 2


def main() -> None:
    texts = [f"text number {number}" for number in range(1000)]
    embedding = DeterministicFakeEmbedding(size=64)
    with tempfile.TemporaryDirectory() as folder:
        store = RabitqSsdStore.from_texts(texts, embedding, folder=os.path.join(folder, "texts"))
        retriever = store.as_retriever(search_kwargs={"k": 2})
        print(retriever.invoke("text number 7")[0].page_content)


if __name__ == "__main__":
    main()
