"""Opaque parameters of classes and claims, read into the driver's own type. Pure.

Parameters apply to the requests that they name, or to all. A name means a request with all its subrequests, or one
subrequest. Those of the class come before those of the claim, so that the last one counts. They are read strictly: a
field that the type does not have, or a value of another type, is an error of that claim.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import hooks, resourceclaim
from drachma.driver.claim import AllocatedDevice, Claim
from drachma.driver.plugin.contract import ClaimReference

_FROM_CLASS: Final = "FromClass"


class Config(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of a driver's parameter type. Fields are camelCase in claims, and unknown fields are refused.

    Parameters usually say what they are; annotate ``api_version`` and ``kind`` with literals to insist on it.
    """

    api_version: str = ""
    kind: str = ""


def read(claim: resourceclaim.ResourceClaim, *, driver: str, config_type: Any) -> Claim:
    """Return the part of an allocated claim that is a driver's.

    Raises:
        errors.DriverError: parameters for the driver cannot be read.
    """
    metadata = claim.metadata
    reference = ClaimReference(metadata.namespace, metadata.name, metadata.uid)
    allocation = claim.status.allocation
    assert allocation is not None, "callers check it"
    configs = _configs(allocation.devices.config, reference, driver=driver, config_type=config_type)
    default = _default(config_type)
    devices = []
    for result in allocation.devices.results:
        if result.driver != driver:
            continue
        own = tuple(config for requests, config in configs if not requests or _concerns(requests, result.request))
        devices.append(
            AllocatedDevice(
                request=result.request,
                pool=result.pool,
                name=result.device,
                share_id=result.share_id,
                admin_access=bool(result.admin_access),
                consumed_capacity=result.consumed_capacity,
                configs=own,
                config=own[-1] if own else default,
            )
        )
    return Claim(reference=reference, devices=tuple(devices), document=claim)


def _configs(
    entries: tuple[resourceclaim.DeviceAllocationConfiguration, ...],
    reference: ClaimReference,
    *,
    driver: str,
    config_type: Any,
) -> list[tuple[tuple[str, ...], Any]]:
    """Return the requests and the content of each configuration, those of classes first."""
    own = [
        (number, entry)
        for number, entry in enumerate(entries)
        if entry.opaque is not None and entry.opaque.driver == driver
    ]
    own.sort(key=lambda each: each[1].source != _FROM_CLASS)
    return [
        (entry.requests, _decoded(entry, config_type, subject=f"claim {reference}, config #{number} ({entry.source})"))
        for number, entry in own
    ]


def _decoded(entry: resourceclaim.DeviceAllocationConfiguration, config_type: Any, *, subject: str) -> Any:
    assert entry.opaque is not None, "only those are read"
    if config_type is None:
        raise errors.DriverError(f"{subject}: driver {entry.opaque.driver} takes no parameters")
    try:
        return msgspec.convert(entry.opaque.parameters, config_type, dec_hook=hooks.decode)
    except (msgspec.ValidationError, errors.InvalidValueError) as error:
        raise errors.DriverError(f"{subject}: parameters: {error}") from error


def _default(config_type: Any) -> Any:
    try:
        return None if config_type is None else msgspec.convert({}, config_type)
    except msgspec.ValidationError:
        return None


def _concerns(requests: tuple[str, ...], request: str) -> bool:
    return request in requests or request.partition("/")[0] in requests
