"""The pod resources socket, called as monitoring agents call it."""

import asyncio
import contextlib
import pathlib
import tempfile
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest

from drachma.api import codec, pod
from drachma.node.claims.podresourcesocket import PodResourceSocket
from drachma.node.claims.preparedclaims import Device, DriverState, Key, PreparedClaim, PreparedClaims
from drachma.nodewire.rpc import messages, services

POD = codec.decode(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "default", "uid": "u"},
        "spec": {
            "initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}],
            "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}],
        },
    }
)
DEVICES = tuple(
    Device(pool_name="p", device_name=f"gpu-{number}", cdi_device_ids=(f"x.com/gpu={number}",), share_id=share)
    for number, share in enumerate([None, "s"])
)
RECORD = PreparedClaim(uid="c", key=Key("default", "mine"), drivers={"d": DriverState(DEVICES)})


@contextlib.asynccontextmanager
async def _asked(*records: PreparedClaim) -> AsyncIterator[Any]:
    """Serve a socket, and yield a function that calls its methods."""
    assert isinstance(POD, pod.Pod)
    with tempfile.TemporaryDirectory(prefix="p") as folder:
        path = pathlib.Path(folder) / "s.sock"
        serving = asyncio.create_task(PodResourceSocket(path, PreparedClaims(records), pods=lambda: [POD]).run())
        async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
            await channel.channel_ready()

            async def call(method: str, **fields: Any) -> Any:
                request = services.POD_RESOURCES.method(method).request(**fields)
                return await services.call(channel, services.POD_RESOURCES, method, request, timeout=60)

            yield call
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_a_container_has_the_devices_of_its_claims() -> None:
    async with _asked(RECORD) as call:
        (entry,) = (await call("List")).pod_resources
        assert (entry.namespace, entry.name) == ("default", "train")
        assert [each.name for each in entry.containers] == ["proxy", "main"]
        (claim,) = entry.containers[1].dynamic_resources
        assert (claim.claim_namespace, claim.claim_name) == ("default", "mine")
        devices = [
            (each.driver_name, each.pool_name, each.device_name, [one.name for one in each.cdi_devices])
            for each in claim.claim_resources
        ]
        assert devices == [("d", "p", "gpu-0", ["x.com/gpu=0"]), ("d", "p", "gpu-1", ["x.com/gpu=1"])]
        assert [each.HasField("share_id") for each in claim.claim_resources] == [False, True]


async def test_a_pod_can_be_asked_for_by_its_name() -> None:
    async with _asked(RECORD) as call:
        answer = await call("Get", pod_name="train", pod_namespace="default")
        assert answer.pod_resources == (await call("List")).pod_resources[0]
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call("Get", pod_name="other", pod_namespace="default")
        assert refusal.value.details() == "pod other in namespace default not found"


async def test_a_pod_whose_claims_are_not_prepared_has_no_devices() -> None:
    async with _asked() as call:
        (entry,) = (await call("List")).pod_resources
        assert not entry.containers[1].dynamic_resources
        assert await call("GetAllocatableResources") == messages.POD_RESOURCES.AllocatableResourcesResponse()
