"""Health checks: liveness and readiness."""

from collections.abc import Callable, Mapping
from typing import Final

from drachma.server.calls import options
from drachma.server.wire import responses

PATHS: Final = ("/healthz", "/livez", "/readyz")

_PUBLIC: Final = frozenset({"store"})
"""Checks whose reasons every client sees, because they reveal only conditions such as a full disk."""

Check = Callable[[], str]
"""Returns the problem, or an empty string."""


class Health:
    """Named checks; those of readiness also fail while the server shuts down."""

    def __init__(self, live: Mapping[str, Check], ready: Mapping[str, Check]) -> None:
        self._checks = {"/healthz": live, "/livez": live, "/readyz": {**live, **ready}}

    def serve(self, path: str, query: options.Query) -> responses.Response | None:
        """Return the response for a health path; None for other paths."""
        root = next((each for each in PATHS if path == each or path.startswith(f"{each}/")), None)
        if root is None:
            return None
        checks = self._checks[root]
        name = path[len(root) + 1 :]
        if path != root:
            check = checks.get(name)
            if check is None:
                return responses.not_served()
            problem = check()
            return (
                responses.text(200, "ok") if not problem else responses.text(500, f"internal server error: {problem}\n")
            )
        excluded = set(query.get("exclude", ()))
        problems = {each: check() for each, check in checks.items() if each not in excluded}
        is_well = not any(problems.values())
        if is_well and "verbose" not in query:
            return responses.text(200, "ok")
        lines = [_line(each, problem) for each, problem in problems.items()]
        verdict = "check passed" if is_well else "check failed"
        return responses.text(200 if is_well else 500, "\n".join([*lines, f"{root[1:]} {verdict}"]) + "\n")


def _line(name: str, problem: str) -> str:
    if not problem:
        return f"[+]{name} ok"
    return f"[-]{name} failed: {problem if name in _PUBLIC else 'reason withheld'}"
