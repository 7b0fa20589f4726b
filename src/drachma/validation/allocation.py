"""Rules for a new allocation in a claim's status. One that is stored is never checked again, only kept as it is."""

from typing import Final

from drachma.api import resourceclaim
from drachma.validation import (
    binding,
    collection,
    deviceclaim,
    fielderror,
    formats,
    limits,
    nodeoperations,
    nodeselector,
    opaque,
    rendering,
    taints,
)
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path

SOURCES: Final = ("FromClaim", "FromClass")


def check(
    allocation: resourceclaim.AllocationResult, at: Path, *, known: deviceclaim.RequestNames, context: Context
) -> Errors:
    """Devices, their configuration and the nodes they can be used on; ``known`` are the claim's requests."""
    below = at.child("devices")
    yield from collection.check_list(
        allocation.devices.results,
        lambda result, path: _result(result, path, known=known),
        at=below.child("results"),
        limit=limits.RESULTS,
        size_covered=True,
    )
    if allocation.devices.config:
        yield from collection.check_list(
            allocation.devices.config,
            lambda config, path: _config(config, path, known=known, context=context),
            at=below.child("config"),
            limit=limits.ALLOCATION_CONFIGS,
            size_covered=True,
        )
    if allocation.node_selector is not None:
        yield from nodeselector.check(allocation.node_selector, at.child("nodeSelector"))


def _result(result: resourceclaim.DeviceRequestAllocationResult, at: Path, *, known: deviceclaim.RequestNames) -> Found:
    found = [
        *known.check(result.request, Path("request", at)),
        *fielderror.covered(
            [
                *formats.driver_name(result.driver, Path("driver", at)),
                *formats.pool_name(result.pool, Path("pool", at)),
            ]
        ),
        *formats.short_name(result.device, Path("device", at)),
        *binding.check(result.binding_conditions, result.binding_failure_conditions, at),
    ]
    if result.tolerations:
        found += taints.check_tolerations(result.tolerations, at.child("tolerations"))
    if result.share_id is not None:
        found += fielderror.covered(formats.uid(result.share_id, at.child("shareID")))
    if result.skip_node_operations:
        found += nodeoperations.check(result.skip_node_operations, at.child("skipNodeOperations"))
    return found


def _config(
    config: resourceclaim.DeviceAllocationConfiguration,
    at: Path,
    *,
    known: deviceclaim.RequestNames,
    context: Context,
) -> Errors:
    source = at.child("source")
    if not config.source:
        yield from fielderror.covered([fielderror.required(source)])
    elif config.source not in SOURCES:
        error = fielderror.not_supported(source, rendering.named(config.source), SOURCES)
        yield from fielderror.covered([error])
    yield from known.check_all(config.requests, at.child("requests"))
    yield from opaque.check(config.opaque, at, context=context)
