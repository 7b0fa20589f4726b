"""Runtime configuration: the API versions that a server does not serve (``--runtime-config``).

Entries are upstream's: ``api/all``, ``api/ga``, ``api/beta`` and ``api/alpha`` for versions of a stage, and
``group/version`` for one version, each ``=true`` or ``=false``. More specific entries decide. Objects are stored in one
version, which cannot be switched off while another version of the kind is served.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from drachma import errors
from drachma.server.surface import apisurface

_STAGES: Final = {
    "api/ga": re.compile(r"v[0-9]+"),
    "api/beta": re.compile(r"v[0-9]+beta[0-9]+"),
    "api/alpha": re.compile(r"v[0-9]+alpha[0-9]+"),
}
_ALL: Final = "api/all"
_CORE: Final = "v1"
_VALUES: Final = {"true": True, "false": False, "": True}


class RuntimeConfig(msgspec.Struct, frozen=True):
    """Switches by entry. Versions without an entry are served."""

    switches: Mapping[str, bool] = {}

    @classmethod
    def parse(cls, text: str) -> RuntimeConfig:
        """Return the configuration of comma-separated entries.

        Raises:
            errors.InvalidValueError: an entry is not a switch, or switches off the core API.
        """
        switches: dict[str, bool] = {}
        for entry in filter(None, map(str.strip, text.split(","))):
            name, _, value = entry.partition("=")
            if value not in _VALUES:
                raise errors.InvalidValueError(f"runtime configuration {entry!r}: expected true or false")
            if "/" not in name and name != _CORE:
                raise errors.InvalidValueError(f"runtime configuration {entry!r}: expected group/version, or api/STAGE")
            switches[name] = _VALUES[value]
        config = cls(switches)
        if not config.serves("", _CORE):
            raise errors.InvalidValueError(f"runtime configuration {text!r}: the core API v1 cannot be switched off")
        return config

    def serves(self, group: str, version: str) -> bool:
        """Return True if a version of a group is served."""
        name = f"{group}/{version}" if group else version
        if name in self.switches:
            return self.switches[name]
        for stage, pattern in _STAGES.items():
            if stage in self.switches and pattern.fullmatch(version):
                return self.switches[stage]
        return self.switches.get(_ALL, True)

    def select(self, kinds: Iterable[apisurface.Kind]) -> tuple[apisurface.Kind, ...]:
        """Return the kinds that are served, each in the versions that are served.

        Raises:
            errors.InvalidValueError: a kind would be served without the version in which it is stored.
        """
        if not self.switches:
            return tuple(kinds)
        selected: list[apisurface.Kind] = []
        for kind in kinds:
            versions = tuple(version for version in kind.versions if self.serves(kind.group, version))
            if not versions:
                continue
            if versions[0] != kind.versions[0]:
                raise errors.InvalidValueError(
                    f"runtime configuration: {kind.qualified} is stored as {kind.api_version(kind.versions[0])}, which "
                    f"cannot be switched off while {kind.api_version(versions[0])} is served"
                )
            selected.append(kind if versions == kind.versions else msgspec.structs.replace(kind, versions=versions))
        return tuple(selected)


EVERYTHING: Final = RuntimeConfig()
"""Configuration that serves all versions."""
