"""How results are got that follow from a value alone: worked out, or remembered by somebody who has seen its like."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

_T = TypeVar("_T")


class Derive(Protocol):
    """Gives ``function(value, *facts)``, which depends on nothing else, and which nobody changes."""

    def __call__(self, value: Any, function: Callable[..., _T], *facts: Any) -> _T: ...


def afresh(value: Any, function: Callable[..., _T], *facts: Any) -> _T:
    """Works it out."""
    return function(value, *facts)
