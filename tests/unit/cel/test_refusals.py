"""Refusals that are remembered: they keep nothing of the request that was refused."""

import weakref
from collections.abc import Callable

import pytest

from drachma.cel import cache, program
from drachma.cel.runtime import regex
from tests.property.cel_hostile import ENV


class _Body:
    """Content of a request."""


def _refuse(compile_text: Callable[[], object], error: type[Exception]) -> weakref.ref[_Body]:
    """Let a request be refused, and return a reference to its content."""
    body = _Body()
    with pytest.raises(error):
        compile_text()
    return weakref.ref(body)


@pytest.mark.parametrize("pattern", [pytest.param("(remembered", id="syntax"), pytest.param("r{1001}", id="size")])
def test_a_refused_pattern_keeps_nothing_of_its_request(pattern: str) -> None:
    assert _refuse(lambda: regex.compile_pattern(pattern), regex.PatternError)() is None
    with pytest.raises(regex.PatternError, match="error parsing regexp"):
        regex.compile_pattern(pattern)


def test_a_refused_expression_keeps_nothing_of_its_request() -> None:
    programs = cache.Cache(ENV)
    assert _refuse(lambda: programs.selector("device.nothing("), program.CompilationError)() is None
    assert len(programs) == 1
