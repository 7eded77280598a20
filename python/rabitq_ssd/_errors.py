"""Exceptions with a base among Python's own."""

from __future__ import annotations

from ._core import SearchError


class SearchTimeoutError(SearchError, TimeoutError):
    """A query was not answered within its timeout."""

    __module__ = "rabitq_ssd"
