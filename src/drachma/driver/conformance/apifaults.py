"""Faults of an API server, injected at exactly the moment that a rule is about.

The proxy between the two asks before it forwards a request of the driver; rules decide what happens.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

import msgspec

READS: Final = frozenset({"GET"})
WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})

_REASONS: Final = {
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.CONFLICT: "Conflict",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalError",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable",
}
_RESOURCE: Final = re.compile(r"^/(?:api|apis/[^/]+)/[^/]+/(?:namespaces/[^/]+/)?([^/]+)")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Fault for some requests: they are refused with a code, or only delayed."""

    resource: str = ""
    """The plural name of what requests are about; empty: whatever it is."""
    methods: frozenset[str] = READS | WRITES
    code: HTTPStatus | None = None
    seconds: float = 0.0
    times: int | None = None
    """Number of requests that meet it; None for all."""

    @property
    def status(self) -> dict[str, Any] | None:
        """Status that refuses a request; None if it is not refused."""
        if self.code is None:
            return None
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "drachma driver check has this request fail",
            "reason": _REASONS.get(self.code, ""),
            "code": int(self.code),
        }

    def is_about(self, method: str, path: str) -> bool:
        match = _RESOURCE.match(path)
        return method in self.methods and (not self.resource or (match is not None and match[1] == self.resource))


class Injection:
    """A fault that is in force, and how many requests have met it."""

    def __init__(self, fault: Fault) -> None:
        self.fault: Final = fault
        self.count = 0

    @property
    def is_over(self) -> bool:
        return self.fault.times is not None and self.count >= self.fault.times


class ApiFaults:
    """All faults that are in force."""

    def __init__(self) -> None:
        self._injections: Final[list[Injection]] = []

    @contextlib.contextmanager
    def injected(self, fault: Fault) -> Iterator[Injection]:
        """Has the fault in force, and says how many requests met it."""
        injection = Injection(fault)
        self._injections.append(injection)
        try:
            yield injection
        finally:
            self._injections.remove(injection)

    def meet(self, method: str, path: str) -> Fault | None:
        """Return the fault for a request, and count the request."""
        for injection in self._injections:
            if not injection.is_over and injection.fault.is_about(method, path):
                injection.count += 1
                return injection.fault
        return None
