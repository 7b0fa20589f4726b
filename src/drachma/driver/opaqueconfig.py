"""Opaque parameters of classes and claims, read into the driver's own type. Pure.

Parameters apply to the requests that they name, or to all. A name means a request with all its subrequests, or one
subrequest. Those of the class come before those of the claim, so that the last one counts. They are read strictly: a
field that the type does not have, or a value of another type, is an error of that claim. So is a field for
administrators (:data:`drachma.driver.adminfields.AdminOnly`) in a claim; its value is always the class's.
"""

from __future__ import annotations

from typing import Any

import msgspec

from drachma import errors
from drachma.api import hooks, resourceclaim
from drachma.driver import adminfields
from drachma.driver.claim import AllocatedDevice, Claim, ConfigSource, Parameters
from drachma.driver.plugin.contract import ClaimReference


class Config(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of a driver's parameter type. Fields are camelCase in claims, and unknown fields are refused.

    Parameters usually say what they are; annotate ``api_version`` and ``kind`` with literals to insist on it.
    """

    api_version: str = ""
    kind: str = ""


def convert(parameters: Any, config_type: Any, *, driver: str, source: ConfigSource) -> Any:
    """Return parameters in the driver's type.

    Raises:
        errors.DriverError: the driver takes none, a field or a value is not one of the type, or a claim sets a field
            that only administrators may set.
    """
    if config_type is None:
        raise errors.DriverError(f"driver {driver} takes no parameters")
    try:
        config = msgspec.convert(parameters, config_type, dec_hook=hooks.decode)
    except (msgspec.ValidationError, errors.InvalidValueError) as error:
        raise errors.DriverError(f"parameters: {error}") from error
    if source is ConfigSource.CLAIM and (fields := adminfields.find(parameters, config_type)):
        raise errors.DriverError(f"parameters: {', '.join(fields)}: only a DeviceClass may set this")
    return config


def read(claim: resourceclaim.ResourceClaim, *, driver: str, config_type: Any) -> Claim:
    """Return the part of an allocated claim that is a driver's.

    Raises:
        errors.DriverError: parameters for the driver cannot be read.
    """
    metadata = claim.metadata
    reference = ClaimReference(metadata.namespace, metadata.name, metadata.uid)
    allocation = claim.status.allocation
    assert allocation is not None, "callers check it"
    configs = _parameters(allocation.devices.config, reference, driver=driver, config_type=config_type)
    default = _default(config_type)
    devices = []
    for result in allocation.devices.results:
        if result.driver != driver:
            continue
        own = tuple(each for requests, each in configs if not requests or _concerns(requests, result.request))
        devices.append(
            AllocatedDevice(
                request=result.request,
                pool=result.pool,
                name=result.device,
                share_id=result.share_id,
                admin_access=bool(result.admin_access),
                consumed_capacity=result.consumed_capacity,
                parameters=own,
                config=_effective(own, default),
            )
        )
    return Claim(reference=reference, devices=tuple(devices), document=claim)


def _effective(parameters: tuple[Parameters, ...], default: Any) -> Any:
    """Return the parameters that count."""
    if not parameters:
        return default
    last = parameters[-1]
    if last.source is ConfigSource.CLASS:
        return last.config
    of_class = [each.config for each in parameters if each.source is ConfigSource.CLASS]
    base = of_class[-1] if of_class else default
    return last.config if base is None else adminfields.take_over(base, last.config)


def _parameters(
    entries: tuple[resourceclaim.DeviceAllocationConfiguration, ...],
    reference: ClaimReference,
    *,
    driver: str,
    config_type: Any,
) -> list[tuple[tuple[str, ...], Parameters]]:
    """Return the requests and the content of each configuration, those of classes first."""
    own = [
        (number, entry)
        for number, entry in enumerate(entries)
        if entry.opaque is not None and entry.opaque.driver == driver
    ]
    own.sort(key=lambda each: each[1].source != ConfigSource.CLASS)
    return [
        (entry.requests, _decoded(entry, config_type, subject=f"claim {reference}, config #{number} ({entry.source})"))
        for number, entry in own
    ]


def _decoded(entry: resourceclaim.DeviceAllocationConfiguration, config_type: Any, *, subject: str) -> Parameters:
    assert entry.opaque is not None, "only those are read"
    # An unknown source of a later Kubernetes has no more rights than a user.
    source = ConfigSource.CLASS if entry.source == ConfigSource.CLASS else ConfigSource.CLAIM
    try:
        config = convert(entry.opaque.parameters, config_type, driver=entry.opaque.driver, source=source)
    except errors.DriverError as error:
        raise errors.DriverError(f"{subject}: {error}") from error
    return Parameters(source=source, config=config)


def _default(config_type: Any) -> Any:
    try:
        return None if config_type is None else msgspec.convert({}, config_type)
    except msgspec.ValidationError:
        return None


def _concerns(requests: tuple[str, ...], request: str) -> bool:
    return request in requests or request.partition("/")[0] in requests
