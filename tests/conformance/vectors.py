"""Recorded behaviour of upstream, one JSON document a line; docs/recordings.md says how it was recorded.

A recording ``NAME.jsonl`` is read from ``$DRACHMA_VECTORS`` if that is set, else from ``../shared/vectors``, else from
its compressed copy in ``tests/recordings``. Only recordings whose inputs were written for drachma have such a copy. The
tests of an absent recording are skipped with one line that says so; if ``CI`` is set, they fail.

Every line of a file is a test, and the file's name is in the test's name, so that
``pytest tests/conformance -k allocator_random`` runs the lines of ``allocator-random.jsonl``. ``exclusions`` lists the
lines that are not replayed.
"""

import json
import lzma
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.conformance import exclusions

Line = dict[str, Any]

_PROJECT = Path(__file__).resolve().parents[2]
_TestT = TypeVar("_TestT", bound=Callable[..., Any])

OWN = _PROJECT / "tests" / "recordings"
"""Folder of the compressed recordings that are part of the repository."""


def folder() -> Path:
    """Return the folder of the recordings outside of the repository, which may not exist."""
    configured = os.environ.get("DRACHMA_VECTORS")
    return Path(configured) if configured else _PROJECT.parent / "shared" / "vectors"


def own(name: str) -> Path:
    """Return the path of a recording's compressed copy in the repository, which may not exist."""
    return OWN / f"{name}.jsonl.xz"


def read(name: str) -> list[Line] | None:
    """Return the lines of a recording, or None if it is absent."""
    path = folder() / f"{name}.jsonl"
    if path.is_file():
        content = path.read_bytes()
    elif own(name).is_file():
        content = lzma.decompress(own(name).read_bytes())
    else:
        return None
    return [json.loads(line) for line in content.splitlines()]


def each(
    name: str,
    *,
    where: Callable[[Line], bool] = lambda _: True,
    title: Callable[[Line], str] = lambda line: str(line["name"]),
    needs: Callable[[Line], Iterable[Path]] = lambda _: (),
) -> Callable[[_TestT], _TestT]:
    """Run a test with each line of a recording as ``case``, or with the lines for which ``where`` is true.

    ``needs`` returns files outside of the repository that a line refers to; without them the line is skipped.
    """

    def decorate(test: _TestT) -> _TestT:
        assert name.replace("-", "_") in test.__name__, f"{test.__name__}: the name must tell that it replays {name}"
        lines = read(name)
        if lines is None:
            reason = required(folder() / f"{name}.jsonl")
            parameters = [pytest.param({}, id="absent", marks=pytest.mark.skip(reason=reason))]
        else:
            parameters = [_parameter(name, title(line), line, needs(line)) for line in lines if where(line)]
        replayed: _TestT = pytest.mark.parametrize("case", parameters)(test)
        return replayed

    return decorate


def openapi(name: str) -> Line:
    """Return the schemas of a recorded OpenAPI document; skip the calling test if it is absent."""
    path = folder().parent / "openapi" / name
    if not path.is_file():
        pytest.skip(required(path))
    schemas: Line = json.loads(path.read_text(encoding="utf-8"))["components"]["schemas"]
    return schemas


def _parameter(name: str, title: str, line: Line, files: Iterable[Path]) -> Any:
    excluded = exclusions.reason(name, title)
    reason = "" if excluded is None else f"docs/differences.md: {excluded}"
    for path in files:
        if not path.is_file():
            reason = required(path)
    return pytest.param(line, id=title, marks=pytest.mark.skip(reason=reason) if reason else ())


def required(path: Path) -> str:
    """Return the message that a recording is absent. Fail instead if it must be there."""
    message = f"recording absent: {path} (set DRACHMA_VECTORS to the folder of the vectors)"
    if os.environ.get("CI"):
        pytest.fail(f"{message}; it is required because CI is set", pytrace=False)
    return message
