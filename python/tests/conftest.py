from __future__ import annotations

from typing import Any

import pytest
import rabitq_ssd
from support import normal


@pytest.fixture(scope="session")
def rows() -> Any:
    return normal(3000)


@pytest.fixture(scope="session")
def index(rows: Any, tmp_path_factory: pytest.TempPathFactory) -> rabitq_ssd.Index:
    """An index of those rows; a search of all its lists is exact."""
    return rabitq_ssd.build(rows, tmp_path_factory.mktemp("shared") / "index", record="f32")
