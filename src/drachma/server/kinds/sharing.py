"""What was made of parts of objects, remembered by the very parts.

Many objects are like others but for their name, and most writes leave most of an object as it was. Strategies keep such
parts shared, one object for all, and ask here for what was made of one before: its typed form, its stored form.
"""

from typing import Generic, TypeVar

_PartT = TypeVar("_PartT")
_OutcomeT = TypeVar("_OutcomeT")


class Outcomes(Generic[_PartT, _OutcomeT]):
    """Outcomes by the identity of a part that nobody changes; each part is kept, so that nothing else can get its id.

    With more than ``limit`` of them all are forgotten, and those in use are soon there again.
    """

    __slots__ = ("_known", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[int, tuple[_PartT, _OutcomeT]] = {}

    def find(self, part: _PartT) -> _OutcomeT | None:
        key = id(part)
        return self._known[key][1] if key in self._known else None

    def remember(self, part: _PartT, outcome: _OutcomeT) -> None:
        if len(self._known) >= self._limit:
            self._known.clear()
        self._known[id(part)] = (part, outcome)
