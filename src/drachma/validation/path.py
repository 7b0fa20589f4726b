"""Documents, and paths of fields in them as Kubernetes spells them: ``spec.devices[0].attributes[example.com/model]``.

Nearly all objects are valid, so a path only records its steps, and is spelled for messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

Document: TypeAlias = Mapping[str, Any]
"""Value of an object, or a part of it, as clients write it."""


class Path(msgspec.Struct, frozen=True, gc=False):
    """Path of a value in an object; ``str()`` spells it. A position or key in ``step`` is spelled in brackets."""

    step: str | int = ""
    above: Path | None = None
    is_inside: bool = False

    def child(self, name: str, *names: str) -> Path:
        """Return the path of a field below this one."""
        return Path(".".join((name, *names)) if names else name, self)

    def item(self, position: int) -> Path:
        """Return the path of an item of this list."""
        return Path(position, self, is_inside=True)

    def key(self, key: str) -> Path:
        """Return the path of a value of this map."""
        return Path(key, self, is_inside=True)

    def __str__(self) -> str:
        before = str(self.above) if self.above is not None else ""
        if self.is_inside:
            return f"{before}[{self.step}]"
        return f"{before}.{self.step}" if before else str(self.step)


ROOT = Path()
METADATA = Path("metadata")
SPEC = Path("spec")
STATUS = Path("status")
