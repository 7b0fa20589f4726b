"""Rule for the node operations that a driver asks to skip."""

from typing import Final

from drachma.validation import fielderror, printed
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

OPERATIONS: Final = ("*", "NodePrepareResources", "NodeUnprepareResources")


def check(skipped: tuple[str, ...], at: Path) -> Errors:
    """Whoever is not asked to prepare cannot be asked to unprepare."""
    if "NodePrepareResources" in skipped and not {"NodeUnprepareResources", "*"}.intersection(skipped):
        detail = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        yield fielderror.invalid(at, printed.wire(skipped), detail)
