"""Claims as drivers see them: the devices that are theirs, with the configuration that was meant for each."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from drachma.api import resourceclaim
from drachma.driver.plugin.contract import ClaimReference
from drachma.values import quantity


class ConfigSource(enum.StrEnum):
    """Author of parameters: an administrator in a DeviceClass, or a user in a claim."""

    CLASS = "FromClass"
    CLAIM = "FromClaim"


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters in the driver's type, and where they are from."""

    source: ConfigSource
    config: Any


class AllocatedDevice(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One allocated device of the driver; each is a key of its own, also where a device is there twice."""

    request: str
    """For what it was allocated: ``request``, or ``request/subrequest``."""
    pool: str
    name: str
    share_id: str | None = None
    admin_access: bool = False
    """True for access to a device that may be in use, for administrators."""
    consumed_capacity: Mapping[str, quantity.Quantity] = {}
    parameters: tuple[Parameters, ...] = ()
    """All parameters for it, those of its class before those of the claim."""
    config: Any = None
    """The last of them, which counts, with the fields for administrators as the class has them.

    Without any parameters, those that the driver's type has by default, or None.
    """

    @property
    def configs(self) -> tuple[Any, ...]:
        """All parameters in the driver's type, those of the class before those of the claim."""
        return tuple(each.config for each in self.parameters)

    @property
    def class_configs(self) -> tuple[Any, ...]:
        """Parameters that administrators wrote, in classes."""
        return tuple(each.config for each in self.parameters if each.source is ConfigSource.CLASS)

    @property
    def claim_configs(self) -> tuple[Any, ...]:
        """Parameters that users wrote, in claims."""
        return tuple(each.config for each in self.parameters if each.source is ConfigSource.CLAIM)


class Claim(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A claim to prepare; ``document`` is all of it."""

    reference: ClaimReference
    devices: tuple[AllocatedDevice, ...]
    document: resourceclaim.ResourceClaim

    @property
    def uid(self) -> str:
        """Uid of the claim, which tells it from another claim of the same name."""
        return self.reference.uid

    def __str__(self) -> str:
        return str(self.reference)
