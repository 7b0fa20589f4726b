"""Rules for selectors of labels and nodes: in documents, and node selectors also in structs."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import rulenotation
from drachma.validation.fielderror import Found
from drachma.validation.path import Path


def check(selector: Mapping[str, Any] | None, at: Path) -> Found:
    """Return the errors of a selector, if there is one."""
    return TYPES["LabelSelector"](selector, at) if selector else ()


TYPES: Final = rulenotation.load("selectors", globals())
check_nodes: Final = rulenotation.load_structs("selectors", globals())["NodeSelector"]
"""Returns the errors of a node selector that is a struct."""
