"""Rule for the node operations that a driver asks to skip."""

from typing import Final

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Found
from drachma.validation.path import Path

OPERATIONS: Final = ("*", "NodePrepareResources", "NodeUnprepareResources")


def check(skipped: tuple[str, ...], at: Path) -> Found:
    """Whoever is not asked to prepare cannot be asked to unprepare."""
    if "NodePrepareResources" not in skipped or {"NodeUnprepareResources", "*"}.intersection(skipped):
        return ()
    detail = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
    return [fielderror.invalid(at, rendering.wire(skipped), detail)]
