"""Builders for ResourceClaim and ResourceClaimTemplate."""

import abc
from collections.abc import Mapping
from typing import Any, Self

from msgspec import structs

from drachma.api import devices, meta, resourceclaim, resourceclaimtemplate
from drachma.api.struct import ABSENT_INT, ABSENT_TEXT, ABSENT_TUPLE
from drachma.driver import devices as device_builders
from drachma.testing import builder


def _main(
    device_class: str,
    *,
    count: int | None,
    mode: str | None,
    select: tuple[str, ...] | str,
    capacity: Mapping[str, device_builders.Amount] | None,
    tolerations: tuple[devices.DeviceToleration, ...],
) -> dict[str, Any]:
    requested = {name: device_builders.amount(value) for name, value in (capacity or {}).items()}
    return {
        "device_class_name": device_class,
        "selectors": builder.selectors(select),
        "allocation_mode": ABSENT_TEXT if mode is None else mode,
        "count": ABSENT_INT if count is None else count,
        "capacity": resourceclaim.CapacityRequirements(requests=requested) if requested else None,
        "tolerations": tolerations or ABSENT_TUPLE,
    }


def subrequest(
    name: str,
    device_class: str,
    *,
    count: int | None = None,
    mode: str | None = None,
    select: tuple[str, ...] | str = (),
    capacity: Mapping[str, device_builders.Amount] | None = None,
    tolerations: tuple[devices.DeviceToleration, ...] = (),
) -> resourceclaim.DeviceSubRequest:
    """Return an alternative of a request, for :meth:`_ClaimSpecBuilder.first_available`."""
    fields = _main(device_class, count=count, mode=mode, select=select, capacity=capacity, tolerations=tolerations)
    return resourceclaim.DeviceSubRequest(name=name, **fields)


class _ClaimSpecBuilder(builder.Builder[builder.ObjectT], abc.ABC):
    """Common methods for claims and templates."""

    __slots__ = ()

    def request(
        self,
        name: str,
        *,
        device_class: str,
        count: int | None = None,
        mode: str | None = None,
        select: tuple[str, ...] | str = (),
        admin_access: bool | None = None,
        capacity: Mapping[str, device_builders.Amount] | None = None,
        tolerations: tuple[devices.DeviceToleration, ...] = (),
    ) -> Self:
        """Add a request for exactly these devices."""
        fields = _main(device_class, count=count, mode=mode, select=select, capacity=capacity, tolerations=tolerations)
        exactly = resourceclaim.ExactDeviceRequest(admin_access=admin_access, **fields)
        return self._add_request(resourceclaim.DeviceRequest(name=name, exactly=exactly))

    def first_available(self, name: str, *alternatives: resourceclaim.DeviceSubRequest) -> Self:
        """Add a request for the first alternative that fits."""
        return self._add_request(resourceclaim.DeviceRequest(name=name, first_available=alternatives))

    def match_attribute(self, attribute: str, *requests: str) -> Self:
        """Require equal values of an attribute for the devices of these requests."""
        return self._add_constraint(
            resourceclaim.DeviceConstraint(requests=requests or ABSENT_TUPLE, match_attribute=attribute)
        )

    def distinct_attribute(self, attribute: str, *requests: str) -> Self:
        """Require different values of an attribute for the devices of these requests."""
        return self._add_constraint(
            resourceclaim.DeviceConstraint(requests=requests or ABSENT_TUPLE, distinct_attribute=attribute)
        )

    def config(self, driver: str, parameters: Any, *requests: str) -> Self:
        """Add opaque configuration for the devices of these requests."""
        opaque = devices.OpaqueDeviceConfiguration(driver=driver, parameters=parameters)
        entry = resourceclaim.DeviceClaimConfiguration(requests=requests or ABSENT_TUPLE, opaque=opaque)
        claimed = self._claimed()
        return self._replace_claimed(structs.replace(claimed, config=(*claimed.config, entry)))

    def _add_request(self, request: resourceclaim.DeviceRequest) -> Self:
        claimed = self._claimed()
        return self._replace_claimed(structs.replace(claimed, requests=(*claimed.requests, request)))

    def _add_constraint(self, constraint: resourceclaim.DeviceConstraint) -> Self:
        claimed = self._claimed()
        return self._replace_claimed(structs.replace(claimed, constraints=(*claimed.constraints, constraint)))

    @abc.abstractmethod
    def _claimed(self) -> resourceclaim.DeviceClaim:
        """Return the devices that the object claims."""

    @abc.abstractmethod
    def _replace_claimed(self, claimed: resourceclaim.DeviceClaim) -> Self:
        """Return a builder of the object with other devices."""


class ClaimBuilder(_ClaimSpecBuilder[resourceclaim.ResourceClaim]):
    """Builds a ResourceClaim."""

    __slots__ = ()

    def allocated(
        self, *results: tuple[str, str, str, str], node_selector: Any = None, share_id: str | None = None
    ) -> Self:
        """Allocate devices, each as (request, driver, pool, device)."""
        allocated = tuple(
            resourceclaim.DeviceRequestAllocationResult(
                request=request, driver=driver, pool=pool, device=device, share_id=share_id
            )
            for request, driver, pool, device in results
        )
        allocation = resourceclaim.AllocationResult(
            devices=resourceclaim.DeviceAllocationResult(results=allocated), node_selector=node_selector
        )
        return self._with(status=structs.replace(self._object.status, allocation=allocation))

    def reserved_for(self, pod: str, *, uid: str) -> Self:
        """Add a consumer."""
        consumer = resourceclaim.ResourceClaimConsumerReference(resource="pods", name=pod, uid=uid)
        consumers = (*self._object.status.reserved_for, consumer)
        return self._with(status=structs.replace(self._object.status, reserved_for=consumers))

    def _claimed(self) -> resourceclaim.DeviceClaim:
        return self._object.spec.devices

    def _replace_claimed(self, claimed: resourceclaim.DeviceClaim) -> Self:
        return self._with(spec=resourceclaim.ResourceClaimSpec(devices=claimed))


class ClaimTemplateBuilder(_ClaimSpecBuilder[resourceclaimtemplate.ResourceClaimTemplate]):
    """Builds a ResourceClaimTemplate."""

    __slots__ = ()

    def _claimed(self) -> resourceclaim.DeviceClaim:
        return self._object.spec.spec.devices

    def _replace_claimed(self, claimed: resourceclaim.DeviceClaim) -> Self:
        spec = resourceclaim.ResourceClaimSpec(devices=claimed)
        return self._with(spec=structs.replace(self._object.spec, spec=spec))


def claim(name: str, *, namespace: str = "default") -> ClaimBuilder:
    """Return a builder for a claim without requests."""
    return ClaimBuilder(resourceclaim.ResourceClaim(metadata=meta.ObjectMeta(name=name, namespace=namespace)))


def claim_template(name: str, *, namespace: str = "default") -> ClaimTemplateBuilder:
    """Return a builder for a template of claims without requests."""
    metadata = meta.ObjectMeta(name=name, namespace=namespace)
    return ClaimTemplateBuilder(resourceclaimtemplate.ResourceClaimTemplate(metadata=metadata))
