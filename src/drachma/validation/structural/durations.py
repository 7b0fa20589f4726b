"""Durations as the format ``duration`` has them: Go's, or numbers with spelled-out units such as ``3 days``."""

import re
from typing import Final

from drachma.cel.runtime import instants, values

_SECOND: Final = 10**9
_UNITS: Final = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 10**3),
    (("ms", "milli"), 10**6),
    (("s", "sec"), _SECOND),
    (("m", "min"), 60 * _SECOND),
    (("h", "hr", "hour"), 3600 * _SECOND),
    (("d", "day"), 24 * 3600 * _SECOND),
    (("w", "wk", "week"), 7 * 24 * 3600 * _SECOND),
)
_parts: Final = re.compile(r"([0-9]{1,19})\s*([A-Za-zµ]+)").finditer


def parse(text: str) -> values.Duration | None:
    """The duration that a text spells; None where it spells none."""
    plain = instants.parse_duration(text)
    if plain is not None:
        return plain
    total, is_duration = 0, False
    for match in _parts(text):
        unit = match[2].lower()
        for names, nanos in _UNITS:
            # Of every unit the last name stands for all words that begin with it.
            hits = (unit in names[:-1]) + unit.startswith(names[-1])
            if hits:
                is_duration = True
                total += hits * int(match[1]) * nanos
    return values.Duration(total) if is_duration and abs(total) <= values.INT_MAX else None
