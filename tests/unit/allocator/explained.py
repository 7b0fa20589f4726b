"""Small clusters to explain: one node, devices of one driver unless said otherwise, everything on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from drachma import allocator
from drachma.allocator import explanation, selectors
from drachma.allocator.explanation import cause, report
from drachma.api import defaults as api_defaults
from drachma.api import deviceclass, devicetaintrule, resourceclaim, resourceslice
from drachma.driver import devices as device_builders
from drachma.testing import ClaimBuilder, DeviceBuilder, SliceBuilder, device_class, resource_slice

DRIVER = "gpu.example.com"
NODE = "node-1"
CLASS = device_class("gpu", f'device.driver == "{DRIVER}"')
ALL = allocator.Features.parse_names(["all"])


def gpus(*devices: DeviceBuilder | str, name: str = "gpus", slices: int = 1) -> SliceBuilder:
    """A slice of the node with these devices, in a pool named like it."""
    return resource_slice(name, driver=DRIVER, slices=slices).on_node(NODE).devices(*devices)


def source(
    slices: Iterable[SliceBuilder],
    *,
    held: Iterable[ClaimBuilder] = (),
    classes: Iterable[deviceclass.DeviceClass] = (),
    rules: Iterable[devicetaintrule.DeviceTaintRule] = (),
    features: allocator.Features = ALL,
) -> allocator.Allocator:
    """An allocator over these slices; ``held`` are claims with an allocation."""
    return allocator.Allocator(
        allocator.Catalog((entry.build() for entry in slices), taint_rules=rules),
        classes=allocator.Classes([CLASS.build(), *classes]),
        allocated=allocator.AllocatedState((entry.build() for entry in held), consumable_capacity=True),
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: "share",
    )


def defaulted(claim: ClaimBuilder) -> resourceclaim.ResourceClaim:
    """The claim as an API server would store it."""
    return api_defaults.apply(claim.build(), now=datetime(2026, 1, 1, tzinfo=UTC))


def explain(over: allocator.Allocator, *claims: ClaimBuilder, node: str = NODE) -> report.Explanation:
    """The explanation of these claims together."""
    return explanation.Explainer(over).explain(allocator.Node(node), [defaulted(claim) for claim in claims])


def obstacles(explained: report.Explanation, request: str = "r") -> dict[cause.Cause, tuple[str, ...]]:
    """What keeps devices (by their own names) from a request or subrequest of the first claim."""
    way = alternative(explained, request)
    return {entry.cause: tuple(name.rpartition("/")[2] for name in entry.devices) for entry in way.obstacles}


def alternative(explained: report.Explanation, request: str = "r") -> report.AlternativeReport:
    """The report on a request or subrequest of the first claim."""
    return next(way for entry in explained.claims[0].requests for way in entry.alternatives if way.name == request)


def consuming(claim: ClaimBuilder, **amounts: str) -> ClaimBuilder:
    """An allocated claim whose results are shares that consumed these amounts."""
    built = claim.build()
    assert built.status.allocation is not None
    results = tuple(
        resourceclaim.DeviceRequestAllocationResult(
            request=entry.request,
            driver=entry.driver,
            pool=entry.pool,
            device=entry.device,
            share_id=f"share-of-{built.metadata.name}",
            consumed_capacity={name: device_builders.amount(value) for name, value in amounts.items()},
        )
        for entry in built.status.allocation.devices.results
    )
    allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=results))
    status = resourceclaim.ResourceClaimStatus(allocation=allocation)
    return ClaimBuilder(resourceclaim.ResourceClaim(metadata=built.metadata, spec=built.spec, status=status))


def in_groups(name: str, counter_set: str, *groups: str, **counters: str) -> DeviceBuilder:
    """A device that draws from a counter set and declares compatibility groups there."""
    taken = {key: resourceslice.Counter(value=device_builders.amount(value)) for key, value in counters.items()}
    consumed = resourceslice.DeviceCounterConsumption(
        counter_set=counter_set, counters=taken, compatibility_groups=groups
    )
    return DeviceBuilder(resourceslice.Device(name=name, consumes_counters=(consumed,)))
