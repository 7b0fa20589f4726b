"""A rule for drivers, and what can come of trying it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

from drachma.driver.conformance.stage import Stage

GRPC: Final = "DRA gRPC API"
KEP: Final = "KEP-4381"


class FailureError(Exception):
    """The driver breaks the rule."""


class SkipError(Exception):
    """The rule cannot be tried on this driver, or here."""


Act: TypeAlias = Callable[[Stage], Awaitable[None]]


class Check(NamedTuple):
    """A rule and how it is tried; one that drivers should keep to and need not gives warnings."""

    name: str
    rule: str
    source: str
    act: Act
    is_must: bool = True
