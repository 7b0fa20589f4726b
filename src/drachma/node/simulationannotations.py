"""Annotations by which people say how what is only imagined is to behave, all under one prefix. Pure.

With ``.NAME`` behind it, an annotation is about the part of that name (a container of a pod, a device of a slice) and
counts before the one without.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from drachma import errors

_PREFIX: Final = "simulation.drachma.dev/"


def name(what: str, *, part: str = "") -> str:
    """What the annotation is called that says something about a part, or about all of them."""
    return f"{_PREFIX}{what}.{part}" if part else f"{_PREFIX}{what}"


def text(annotations: Mapping[str, str], what: str, *, part: str) -> str | None:
    """What is said about a part, or about all of them."""
    return annotations.get(name(what, part=part), annotations.get(name(what)))


def number(annotations: Mapping[str, str], what: str, *, part: str) -> float | None:
    """The same as a number.

    Raises:
        errors.InvalidValueError: it is none, or below zero.
    """
    value = text(annotations, what, part=part)
    if value is None:
        return None
    try:
        parsed = float(value)
    except ValueError:
        parsed = math.nan
    if not 0 <= parsed < math.inf:
        raise errors.InvalidValueError(f"annotation {name(what)}: {value!r}: must be a number, not below zero")
    return parsed


def says(annotations: Iterable[str], what: str) -> bool:
    """Whether anything is said of that kind."""
    whole = name(what)
    return any(each == whole or each.startswith(f"{whole}.") for each in annotations)
