"""Rules for label selectors."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import rulenotation
from drachma.validation.fielderror import Found
from drachma.validation.path import Path


def check(selector: Mapping[str, Any] | None, at: Path) -> Found:
    """Return the errors of a selector, if there is one."""
    return TYPES["LabelSelector"](selector, at) if selector else ()


TYPES: Final = rulenotation.load("selectors", globals())
