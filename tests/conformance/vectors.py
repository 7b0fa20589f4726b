"""Recorded upstream behaviour, read from ``$DRACHMA_VECTORS`` or ``../shared/vectors``; never copied in here.

Every line of a file is a test, whatever lines there are, and the file's name is in the test's name, so that
``pytest tests/conformance -k allocator_random`` runs the lines of ``allocator-random.jsonl``. ``exclusions`` has those
that are not replayed. Where a recording is absent, its tests are skipped with one line that says so; where ``CI`` is
set, that line is a failure.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.conformance import exclusions

Line = dict[str, Any]

_PROJECT = Path(__file__).resolve().parents[2]
_TestT = TypeVar("_TestT", bound=Callable[..., Any])


def folder() -> Path:
    """Where the vectors are looked for, whether or not they are there."""
    configured = os.environ.get("DRACHMA_VECTORS")
    return Path(configured) if configured else _PROJECT.parent / "shared" / "vectors"


def each(
    name: str,
    *,
    where: Callable[[Line], bool] = lambda _: True,
    title: Callable[[Line], str] = lambda line: str(line["name"]),
) -> Callable[[_TestT], _TestT]:
    """Runs a test with every line of a file as ``case``: all of them, or those ``where`` something holds."""

    def decorate(test: _TestT) -> _TestT:
        assert name.replace("-", "_") in test.__name__, f"{test.__name__}: the name must tell that it replays {name}"
        replayed: _TestT = pytest.mark.parametrize("case", _parameters(name, where, title))(test)
        return replayed

    return decorate


def openapi(name: str) -> Line:
    """A recorded OpenAPI document's schemas; skips the calling test where it is absent."""
    path = folder().parent / "openapi" / name
    if not path.is_file():
        pytest.skip(required(path))
    schemas: Line = json.loads(path.read_text(encoding="utf-8"))["components"]["schemas"]
    return schemas


def _parameters(name: str, where: Callable[[Line], bool], title: Callable[[Line], str]) -> list[Any]:
    path = folder() / f"{name}.jsonl"
    if not path.is_file():
        return [pytest.param({}, id="absent", marks=pytest.mark.skip(reason=required(path)))]
    with path.open(encoding="utf-8") as file:
        lines = [json.loads(text) for text in file]
    return [_parameter(line, title(line), exclusions.reason(name, title(line))) for line in lines if where(line)]


def _parameter(line: Line, title: str, reason: str | None) -> Any:
    marks = () if reason is None else pytest.mark.skip(reason=f"docs/differences.md: {reason}")
    return pytest.param(line, id=title, marks=marks)


def required(path: Path) -> str:
    """Says that a recording is absent; fails where it must not be."""
    message = f"recording absent: {path} (set DRACHMA_VECTORS to the folder of the vectors)"
    if os.environ.get("CI"):
        pytest.fail(f"{message}; it is required because CI is set", pytrace=False)
    return message
