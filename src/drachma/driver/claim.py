"""Claims as drivers see them: the devices that are theirs, with the configuration that was meant for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drachma.api import resourceclaim
from drachma.driver.plugin.contract import ClaimReference
from drachma.values import quantity


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
    configs: tuple[Any, ...] = ()
    """All parameters for it in the driver's type, those of its class before those of the claim."""
    config: Any = None
    """The last of them, which counts; without any, those that the driver's type has by default, or None."""


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
