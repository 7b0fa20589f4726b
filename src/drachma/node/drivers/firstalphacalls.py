"""Calls of drivers of Kubernetes 1.30 and 1.31, which advertise a version number instead of services.

They have one of three services: ``v1alpha4.Node`` of 1.31, which takes names of claims as its successors do;
``v1alpha3.Node`` of 1.30, which takes the allocation as well; and the older ``v1alpha2.Node``, with one claim a call.
The first service that a driver has is used. The allocation is read from the v1alpha2 claim if there is one, and from
the v1 claim otherwise. A driver's answer concerns a claim as a whole, and so all of its requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio
import msgspec

from drachma import errors
from drachma.api import resourceclaim
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.claims import standins
from drachma.client import Client
from drachma.node.claims.preparedclaims import PREPARE
from drachma.nodewire.rpc import services
from drachma.structured import counterpart

_VERSION: Final = re.compile(r"\s*v?1(\.\d+)+")
_FROM_CLASS: Final = "FromClass"
_FROM_CLAIM: Final = "FromClaim"


def is_version(advertised: str) -> bool:
    """Return True if a driver advertises a version number that agents of that time accepted."""
    return _VERSION.match(advertised) is not None


class Description(NamedTuple):
    """Description of a claim for a driver: its v1alpha2 UID, its allocation, and the v1 results behind it."""

    uid: str
    handle: alpha.ResourceHandle
    results: Sequence[resourceclaim.DeviceRequestAllocationResult] = ()


class FirstAlphaClaims:
    """Reader of descriptions of claims for drivers of the first alpha."""

    def __init__(self, client: Client) -> None:
        self._client: Final = client

    async def read(self, driver: str, namespace: str, name: str) -> Description:
        """Return the description of a claim for a driver.

        Raises:
            errors.NodeError: the claim cannot be read, or is not allocated yet.
        """
        try:
            claim = await self._client.get(resourceclaim.ResourceClaim, name, namespace=namespace)
            is_counterpart = counterpart.CLAIM in claim.metadata.annotations
            original = (
                await self._client.get(alpha.ResourceClaim, name, namespace=namespace) if is_counterpart else None
            )
        except (errors.RefusedError, errors.UnreachableError, errors.DecodeError) as error:
            raise errors.NodeError(f"fetch ResourceClaim {name}: {error}") from None
        allocation = claim.status.allocation
        if allocation is None:
            raise errors.NodeError(f"ResourceClaim {name}: not allocated")
        results = [each for each in allocation.devices.results if each.driver == driver]
        if original is None:
            return Description(claim.metadata.uid, _handle(driver, allocation), results)
        if not counterpart.stands_for(claim, original) or original.status.allocation is None:
            raise errors.NodeError(f"ResourceClaim {name}: not allocated in v1alpha2")
        for handle in original.status.allocation.resource_handles:
            if (handle.driver_name or original.status.driver_name) == driver:
                return Description(original.metadata.uid, handle, results)
        raise errors.NodeError(f"ResourceClaim {name}: nothing of driver {driver} is allocated in v1alpha2")


class FirstAlphaCalls:
    """Calls of one driver instance, in v1 messages."""

    def __init__(self, driver: str, claims: FirstAlphaClaims) -> None:
        self._driver: Final = driver
        self._claims: Final = claims
        self._service: services.Service | None = None
        self._descriptions: Final[dict[str, Description]] = {}
        """Descriptions by claim UID from the preparation, for unpreparing claims that may be gone by then."""

    def request(self, method: str, **fields: Any) -> Any:
        return services.DRA[0].method(method).request(**fields)

    def path(self, method: str) -> str:
        return (self._service or services.FIRST_ALPHA[0]).path(method)

    async def call(self, channel: grpc.aio.Channel, method: str, request: Any, *, timeout: float) -> Any:
        """Call a method; see :class:`drachma.node.drivers.instances.DriverCalls`."""
        candidates = services.FIRST_ALPHA if self._service is None else (self._service,)
        for service in candidates[:-1]:
            try:
                answer = await self._call(service, channel, method, request, timeout=timeout)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                    raise
            else:
                self._service = service
                return answer
        self._service = candidates[-1]
        return await self._call(self._service, channel, method, request, timeout=timeout)

    async def _call(
        self, service: services.Service, channel: grpc.aio.Channel, method: str, request: Any, *, timeout: float
    ) -> Any:
        if service is services.NODE_1_31:
            names = [{"namespace": each.namespace, "uid": each.uid, "name": each.name} for each in request.claims]
            own = service.method(method).request(claims=names)
            return await services.call(channel, service, method, own, timeout=timeout)
        descriptions = {each.uid: await self._describe(method, each) for each in request.claims}
        names = [_reference(each, descriptions[each.uid]) for each in request.claims]
        if service is services.NODE_1_30:
            own = service.method(method).request(claims=names)
            answers = (await services.call(channel, service, method, own, timeout=timeout)).claims
        else:
            answers = {
                each["uid"]: await _call_single(service, channel, method, each, timeout=timeout) for each in names
            }
        return self._translate(method, descriptions, answers)

    async def _describe(self, method: str, reference: Any) -> Description:
        if method == PREPARE:
            return await self._claims.read(self._driver, reference.namespace, reference.name)
        if (description := self._descriptions.get(reference.uid)) is not None:
            return description
        try:
            return await self._claims.read(self._driver, reference.namespace, reference.name)
        except errors.NodeError:
            # The claim is gone with its allocation. The driver finds its leftovers by the claim's name.
            return Description(reference.uid, alpha.ResourceHandle(driver_name=self._driver))

    def _translate(self, method: str, descriptions: Mapping[str, Description], answers: Mapping[str, Any]) -> Any:
        """Return the v1 response for answers about v1alpha2 claims."""
        response = services.DRA[0].method(method).response()
        own = {each.uid: uid for uid, each in descriptions.items()}
        for alpha_uid, answer in answers.items():
            uid = own.get(alpha_uid, alpha_uid)
            response.claims[uid].error = answer.error
            if answer.error:
                continue
            if method != PREPARE:
                self._descriptions.pop(uid, None)
                continue
            ids = list(answer.cdi_devices)
            if uid in descriptions:
                self._descriptions[uid] = descriptions[uid]
                for result in descriptions[uid].results:
                    # Drivers do not assign CDI ids to devices or requests, so users of the claim get all of them.
                    response.claims[uid].devices.add(
                        pool_name=result.pool, device_name=result.device, cdi_device_ids=ids
                    )
                    ids = []
        return response


class _Answer(NamedTuple):
    """Answer for a single claim, in the form of the answers for several claims."""

    cdi_devices: Sequence[str] = ()
    error: str = ""


async def _call_single(
    service: services.Service, channel: grpc.aio.Channel, method: str, claim: Mapping[str, Any], *, timeout: float
) -> _Answer:
    single = method.removesuffix("s")
    fields = {"claim_uid": claim["uid"], "claim_name": claim["name"]}
    fields |= {key: claim[key] for key in ("namespace", "resource_handle", "structured_resource_handle")}
    own = service.method(single).request(**fields)
    try:
        answer = await services.call(channel, service, single, own, timeout=timeout)
    except grpc.aio.AioRpcError as error:
        return _Answer(error=services.problem(error))
    return _Answer(tuple(answer.cdi_devices) if method == PREPARE else ())


def _handle(driver: str, allocation: resourceclaim.AllocationResult) -> alpha.ResourceHandle:
    """Return the allocation of a v1 claim as a v1alpha2 handle."""
    config = {
        each.source: each.opaque.parameters
        for each in allocation.devices.config
        if each.opaque is not None and each.opaque.driver == driver
    }
    results = tuple(
        alpha.DriverAllocationResult(named_resources=alpha.NamedResourcesAllocationResult(name=each.device))
        for each in allocation.devices.results
        if each.driver == driver
    )
    data = alpha.StructuredResourceHandle(
        vendor_class_parameters=config.get(_FROM_CLASS),
        vendor_claim_parameters=config.get(_FROM_CLAIM),
        node_name=standins.node_of(allocation),
        results=results,
    )
    return alpha.ResourceHandle(driver_name=driver, structured_data=data)


def _reference(reference: Any, description: Description) -> dict[str, Any]:
    """Return a claim in the form for drivers of 1.30."""
    data = description.handle.structured_data
    return {
        "namespace": reference.namespace,
        "uid": description.uid,
        "name": reference.name,
        "resource_handle": description.handle.data,
        "structured_resource_handle": [] if data is None else [_structured(data)],
    }


def _structured(data: alpha.StructuredResourceHandle) -> dict[str, Any]:
    model = data.named_resources_with_attributes
    results = [_result(name, None) for name in (model.resources if model is not None else ())]
    results += [
        _result(each.named_resources.name, each.vendor_request_parameters)
        for each in data.results
        if each.named_resources is not None
    ]
    return {
        "vendorClassParameters": _raw(data.vendor_class_parameters),
        "vendorClaimParameters": _raw(data.vendor_claim_parameters),
        "nodeName": data.node_name,
        "results": results,
    }


def _result(name: str, parameters: Any) -> dict[str, Any]:
    return {
        "vendorRequestParameters": _raw(parameters),
        "allocationResultModel": {"namedResources": {"name": name}},
    }


def _raw(parameters: Any) -> dict[str, bytes]:
    return {} if parameters is None else {"raw": msgspec.json.encode(parameters)}
