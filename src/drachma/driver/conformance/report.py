"""Results of checks, as text and as data."""

from __future__ import annotations

import enum
import textwrap
from typing import Final

import msgspec


class Outcome(enum.StrEnum):
    """Result of a check. A warning is about an optional property that drivers should have."""

    PASSED = "passed"
    FAILED = "failed"
    WARNED = "warned"
    SKIPPED = "skipped"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One check: the rule, where it comes from, and what was seen."""

    name: str
    rule: str
    source: str
    outcome: Outcome
    detail: str = ""
    seconds: float = 0.0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one driver, in their order."""

    driver: str
    versions: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()

    def count(self, outcome: Outcome) -> int:
        return sum(result.outcome is outcome for result in self.results)

    @property
    def has_passed(self) -> bool:
        return not self.count(Outcome.FAILED)


_MARKS: Final = {Outcome.PASSED: "ok", Outcome.FAILED: "FAILED", Outcome.WARNED: "warning", Outcome.SKIPPED: "skipped"}
_WIDTH: Final = 118


def text(report: Report) -> str:
    """Return a line a check; for what is not well the rule, where it comes from, and what was seen."""
    lines = [f"driver {report.driver or '(unknown)'}: {', '.join(report.versions) or 'no versions'}"]
    widest = max((len(result.name) for result in report.results), default=0)
    for result in report.results:
        lines.append(f"  {result.name:<{widest}}  {_MARKS[result.outcome]}".rstrip())
        if result.outcome is Outcome.PASSED:
            continue
        for label, content in (("", result.detail), ("rule: ", f"{result.rule} ({result.source})")):
            if content:
                indent = "      "
                lines += textwrap.wrap(
                    f"{label}{content}", width=_WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  "
                )
    counts = [f"{report.count(outcome)} {outcome}" for outcome in Outcome if report.count(outcome)]
    lines.append(", ".join(counts))
    return "\n".join(lines) + "\n"


def json(report: Report) -> str:
    """Return the report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report)).decode() + "\n"
