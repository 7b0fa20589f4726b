"""Calling drivers of Kubernetes 1.30 and 1.31, which advertise a number in place of services.

They have one of three services: ``v1alpha4.Node`` of 1.31, which takes names of claims as its successors do;
``v1alpha3.Node`` of 1.30, which is told what was allocated as well; ``v1alpha2.Node`` of before, one claim a call. The
first that a driver has is used. What is allocated is read from the claim of v1alpha2, where there is one, and from the
v1 claim otherwise. What drivers answer is about a claim as a whole, and is so for all of its requests.
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
from drachma.node.preparedclaims import PREPARE
from drachma.nodewire.rpc import services
from drachma.structured import counterpart

_VERSION: Final = re.compile(r"\s*v?1(\.\d+)+")
_OF_CLASS: Final = "FromClass"
_OF_CLAIM: Final = "FromClaim"


def is_version(advertised: str) -> bool:
    """Whether something that a driver advertises is a number that agents of that time took."""
    return _VERSION.match(advertised) is not None


class Told(NamedTuple):
    """What a driver is told of a claim: its uid in v1alpha2, what was allocated, and by which results of v1."""

    uid: str
    handle: alpha.ResourceHandle
    results: Sequence[resourceclaim.DeviceRequestAllocationResult] = ()


class FirstAlphaClaims:
    """Reads claims as drivers of the first alpha are told of them."""

    def __init__(self, client: Client) -> None:
        self._client: Final = client

    async def read(self, driver: str, namespace: str, name: str) -> Told:
        """What a driver is told of a claim.

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
            return Told(claim.metadata.uid, _handle(driver, allocation), results)
        if not counterpart.stands_for(claim, original) or original.status.allocation is None:
            raise errors.NodeError(f"ResourceClaim {name}: not allocated in v1alpha2")
        for handle in original.status.allocation.resource_handles:
            if (handle.driver_name or original.status.driver_name) == driver:
                return Told(original.metadata.uid, handle, results)
        raise errors.NodeError(f"ResourceClaim {name}: nothing of driver {driver} is allocated in v1alpha2")


class FirstAlphaCalls:
    """The calls of one instance, in messages of v1."""

    def __init__(self, driver: str, claims: FirstAlphaClaims) -> None:
        self._driver: Final = driver
        self._claims: Final = claims
        self._service: services.Service | None = None
        self._told: Final[dict[str, Told]] = {}
        """What was told of claims by uid when they were prepared: that is told again when they may be gone."""

    def request(self, method: str, **fields: Any) -> Any:
        return services.DRA[0].method(method).request(**fields)

    def path(self, method: str) -> str:
        return (self._service or services.FIRST_ALPHA[0]).path(method)

    async def call(self, channel: grpc.aio.Channel, method: str, request: Any, *, timeout: float) -> Any:
        """See :class:`drachma.node.drivercalls.Calls`."""
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
        told = {each.uid: await self._tell(method, each) for each in request.claims}
        names = [_reference(each, told[each.uid]) for each in request.claims]
        if service is services.NODE_1_30:
            own = service.method(method).request(claims=names)
            answers = (await services.call(channel, service, method, own, timeout=timeout)).claims
        else:
            answers = {
                each["uid"]: await _call_single(service, channel, method, each, timeout=timeout) for each in names
            }
        return self._translated(method, told, answers)

    async def _tell(self, method: str, asked: Any) -> Told:
        if method == PREPARE:
            return await self._claims.read(self._driver, asked.namespace, asked.name)
        if (told := self._told.get(asked.uid)) is not None:
            return told
        try:
            return await self._claims.read(self._driver, asked.namespace, asked.name)
        except errors.NodeError:
            # It is gone, and with it what was allocated: drivers find what is left of it by its name.
            return Told(asked.uid, alpha.ResourceHandle(driver_name=self._driver))

    def _translated(self, method: str, told: Mapping[str, Told], answers: Mapping[str, Any]) -> Any:
        """Answers for claims of v1alpha2 as one for those of v1."""
        response = services.DRA[0].method(method).response()
        own = {each.uid: uid for uid, each in told.items()}
        for alpha_uid, answer in answers.items():
            uid = own.get(alpha_uid, alpha_uid)
            response.claims[uid].error = answer.error
            if answer.error:
                continue
            if method != PREPARE:
                self._told.pop(uid, None)
                continue
            ids = list(answer.cdi_devices)
            if uid in told:
                self._told[uid] = told[uid]
                for result in told[uid].results:
                    # Which of them is for which device and request nobody says: whoever uses the claim gets all.
                    response.claims[uid].devices.add(
                        pool_name=result.pool, device_name=result.device, cdi_device_ids=ids
                    )
                    ids = []
        return response


class _Answer(NamedTuple):
    """What became of a claim that was asked for by itself, as answers for several have it."""

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
    """What was allocated to a v1 claim, in the words of v1alpha2."""
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
        vendor_class_parameters=config.get(_OF_CLASS),
        vendor_claim_parameters=config.get(_OF_CLAIM),
        node_name=standins.node_of(allocation),
        results=results,
    )
    return alpha.ResourceHandle(driver_name=driver, structured_data=data)


def _reference(asked: Any, told: Told) -> dict[str, Any]:
    """A claim as drivers of 1.30 are told of it."""
    data = told.handle.structured_data
    return {
        "namespace": asked.namespace,
        "uid": told.uid,
        "name": asked.name,
        "resource_handle": told.handle.data,
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
