"""Field paths, spelled as Kubernetes spells them: ``spec.devices[0].attributes[example.com/model]``."""

from __future__ import annotations


class Path(str):
    """Where in an object a value is."""

    __slots__ = ()

    def child(self, *names: str) -> Path:
        """A field below this one."""
        below = names[0] if len(names) == 1 else ".".join(names)
        return Path(f"{self}.{below}" if self else below)

    def item(self, position: int) -> Path:
        """An item of this list."""
        return Path(f"{self}[{position}]")

    def key(self, key: str) -> Path:
        """A value of this map."""
        return Path(f"{self}[{key}]")


ROOT = Path()
METADATA = Path("metadata")
SPEC = Path("spec")
STATUS = Path("status")
