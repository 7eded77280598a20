"""Documents in a file of JSON lines, read one at a time: what the adapters keep beside an index."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any


class Documents:
    """The lines of a file, by number."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._starts: list[int] = []
        position = 0
        with open(path, "rb") as file:
            for line in file:
                self._starts.append(position)
                position += len(line)
        self._end = position

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Documents:
        with open(path, "xb"):
            return cls(path)

    def __len__(self) -> int:
        return len(self._starts)

    def extend(self, documents: Iterable[Any]) -> None:
        with open(self._path, "ab") as file:
            for document in documents:
                self._starts.append(self._end)
                self._end += file.write(json.dumps(document).encode() + b"\n")

    def __getitem__(self, number: int) -> Any:
        with open(self._path, "rb") as file:
            file.seek(self._starts[number])
            return json.loads(file.readline())
