"""A LlamaIndex vector store over an index that is written once.

    store = RabitqSsdVectorStore(folder="nodes", dim=384)
    context = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(nodes, storage_context=context)
    index.as_retriever(similarity_top_k=4).retrieve("question")

Nodes may be added until the first query, which builds the index; they cannot be deleted.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from documents import Documents
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from rabitq_ssd import faiss


class RabitqSsdVectorStore(BasePydanticVectorStore):
    """The index and the nodes in a folder; similarities are cosines."""

    stores_text: bool = True
    nprobe: int = 64
    _index: faiss.IndexRaBitQSSD = PrivateAttr()
    _nodes: Documents = PrivateAttr()

    def __init__(self, folder: str, dim: int, nprobe: int = 64, **build: Any) -> None:
        super().__init__(stores_text=True, nprobe=nprobe)
        os.makedirs(folder)
        path = os.path.join(folder, "index")
        self._index = faiss.IndexRaBitQSSD(
            dim, metric=faiss.METRIC_INNER_PRODUCT, path=path, **build
        )
        self._nodes = Documents.create(os.path.join(folder, "nodes.jsonl"))

    @classmethod
    def class_name(cls) -> str:
        return "RabitqSsdVectorStore"

    @property
    def client(self) -> faiss.IndexRaBitQSSD:
        return self._index

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        rows = np.array([node.get_embedding() for node in nodes], dtype=np.float32)
        faiss.normalize_L2(rows)
        self._index.add(rows)
        # What is in the index is not kept twice.
        self._nodes.extend(node.model_copy(update={"embedding": None}).to_dict() for node in nodes)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        raise NotImplementedError("an index is written once: build one without the document")

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        if query.mode != VectorStoreQueryMode.DEFAULT or query.filters is not None:
            raise NotImplementedError("only plain queries: no filters, and no mode but the default")
        asked = np.array([query.query_embedding], dtype=np.float32)
        faiss.normalize_L2(asked)
        self._index.nprobe = self.nprobe
        cosines, rows = self._index.search(asked, query.similarity_top_k)
        kept = rows[0] >= 0
        nodes = [TextNode.from_dict(self._nodes[int(row)]) for row in rows[0][kept]]
        return VectorStoreQueryResult(
            nodes=nodes,
            similarities=cosines[0][kept].tolist(),
            ids=[node.node_id for node in nodes],
        )


def main() -> None:
    class Letters(MockEmbedding):
        """How often each letter occurs: enough to find a text again."""

        def _get_text_embedding(self, text: str) -> list[float]:
            return [float(text.count(chr(97 + i)) + 0.01) for i in range(26)]

        _get_query_embedding = _get_text_embedding

    texts = ["glaciers carve valleys", "bread rises by yeast", "tides follow the moon"]
    with tempfile.TemporaryDirectory() as folder:
        store = RabitqSsdVectorStore(os.path.join(folder, "nodes"), dim=26)
        context = StorageContext.from_defaults(vector_store=store)
        nodes = [TextNode(text=text) for text in texts]
        index = VectorStoreIndex(nodes, storage_context=context, embed_model=Letters(embed_dim=26))
        print(index.as_retriever(similarity_top_k=1).retrieve("bread rises")[0].text)


if __name__ == "__main__":
    main()
