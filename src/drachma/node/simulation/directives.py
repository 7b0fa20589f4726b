"""Directives: annotations by which users control the behaviour of simulated objects, all under one prefix. Pure.

A directive with the suffix ``.NAME`` applies to the part of that name (a container of a pod, a device of a slice), and
takes precedence over the directive without a suffix.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from drachma import errors

_PREFIX: Final = "simulation.drachma.dev/"


def name(directive: str, *, part: str = "") -> str:
    """Return the name of the annotation for a directive, for one part or for all parts."""
    return f"{_PREFIX}{directive}.{part}" if part else f"{_PREFIX}{directive}"


def text(annotations: Mapping[str, str], directive: str, *, part: str) -> str | None:
    """Return the value of a directive for a part, or None if there is none."""
    return annotations.get(name(directive, part=part), annotations.get(name(directive)))


def number(annotations: Mapping[str, str], directive: str, *, part: str) -> float | None:
    """Return the value of a directive as a number, or None if there is none.

    Raises:
        errors.InvalidValueError: the value is not a number, or is below zero.
    """
    value = text(annotations, directive, part=part)
    if value is None:
        return None
    try:
        parsed = float(value)
    except ValueError:
        parsed = math.nan
    if not 0 <= parsed < math.inf:
        raise errors.InvalidValueError(f"annotation {name(directive)}: {value!r}: must be a number, not below zero")
    return parsed


def has(annotations: Iterable[str], directive: str) -> bool:
    """Return True if there is a directive of this kind for any part."""
    prefix = name(directive)
    return any(each == prefix or each.startswith(f"{prefix}.") for each in annotations)
