"""Byte sizes as people write them: 2**30, "1GiB", "1.5GB"."""

from __future__ import annotations

import operator
import re
from typing import Union

Size = Union[int, str]

_UNITS = {
    "": 1,
    "b": 1,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}


def size(name: str, given: Size | None) -> int | None:
    """Bytes, or None for None."""
    if given is None:
        return None
    if isinstance(given, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]*)\s*", given)
        unit = _UNITS.get(found.group(2).lower()) if found else None
        if found is None or unit is None:
            raise ValueError(
                f"{name}: {given!r} is no size: give bytes, or a number with "
                "KiB MiB GiB TiB KB MB GB TB"
            )
        return round(float(found.group(1)) * unit)
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"{name} must be bytes or a string like '2GiB', found {given!r}") from None
    if number < 0:
        raise ValueError(f"{name} must not be negative, found {number}")
    return number
