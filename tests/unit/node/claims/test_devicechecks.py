"""The gate DrachmaDeviceChecks: what the agent itself refuses, whatever drivers say."""

from typing import Any

import prometheus_client
import pytest

from drachma import errors
from drachma.api import codec, gates, resourceclaim
from drachma.api.pod import Pod
from drachma.node import agentmetrics
from drachma.node.claims.preparation import Preparation
from drachma.node.claims.preparedclaims import Device, DriverState, Key, PreparedClaim, PreparedClaims
from drachma.nodewire.rpc import services
from drachma.testing.manualclock import ManualClock

DRIVER = "gpu.example.com"


class Carefree:
    """A driver that prepares everything; ``error`` is its answer while it is set."""

    def __init__(self) -> None:
        self.error = ""
        self.calls: list[str] = []

    def request(self, method: str, **fields: Any) -> Any:
        return services.DRA[0].method(method).request(**fields)

    async def call(self, method: str, request: Any) -> Any:
        response = services.DRA[0].method(method).response()
        for claim in request.claims:
            self.calls.append(f"{method} {claim.name}")
            response.claims[claim.uid].error = self.error
            if method == "NodePrepareResources" and not self.error:
                response.claims[claim.uid].devices.add(pool_name="n", device_name="gpu-0")
        return response


class Store:
    def __init__(self, *records: PreparedClaim) -> None:
        self._records = records

    def load(self) -> tuple[PreparedClaims, str]:
        return PreparedClaims(self._records), ""

    def save(self, claims: PreparedClaims) -> None:
        pass


class Node:
    """Preparation on a node with claims that all have the device gpu-0."""

    def __init__(self, *records: PreparedClaim, has_checks: bool = True) -> None:
        self.driver = Carefree()
        self.claims: dict[str, dict[str, Any]] = {}
        self.preparation = Preparation(
            get_claim=self._get_claim,
            find_driver=lambda _: self.driver,
            store=Store(*records),
            metrics=agentmetrics.AgentMetrics(prometheus_client.CollectorRegistry()).node_metrics("worker"),
            clock=ManualClock(),
            gates=gates.ALL.switched({"DrachmaDeviceChecks": has_checks}),
        )

    async def _get_claim(self, namespace: str, name: str) -> resourceclaim.ResourceClaim:
        if name not in self.claims:
            raise errors.ObjectNotFoundError({"message": f"{name} not found"})
        claim = codec.decode(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
                "spec": {},
                "status": {
                    "allocation": {"devices": {"results": [self.claims[name]]}},
                    "reservedFor": [{"resource": "pods", "name": name, "uid": f"pod-{name}"}],
                },
            }
        )
        assert isinstance(claim, resourceclaim.ResourceClaim)
        return claim

    def add(self, name: str, **more: Any) -> Pod:
        """Add a claim, and return its pod."""
        self.claims[name] = {"request": "r", "driver": DRIVER, "pool": "n", "device": "gpu-0", **more}
        pod = codec.decode(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "ns", "uid": f"pod-{name}"},
                "spec": {
                    "containers": [{"name": "c", "image": "i"}],
                    "resourceClaims": [{"name": "r", "resourceClaimName": name}],
                },
            }
        )
        assert isinstance(pod, Pod)
        return pod


IN_USE = "device in use: gpu.example.com/n/gpu-0 is prepared for ResourceClaim ns/a"


async def test_a_device_in_use_is_not_prepared_again() -> None:
    node = Node()
    first, second = node.add("a"), node.add("b")
    await node.preparation.prepare(first)
    del node.claims["a"]
    with pytest.raises(errors.NodeError, match=IN_USE):
        await node.preparation.prepare(second)
    assert node.driver.calls == ["NodePrepareResources a"]
    await node.preparation.unprepare(first)
    await node.preparation.prepare(second)


async def test_without_the_gate_that_is_left_to_the_driver() -> None:
    node = Node(has_checks=False)
    for name in ("a", "b"):
        await node.preparation.prepare(node.add(name))
    assert len(node.driver.calls) == 2


@pytest.mark.parametrize(
    ("holder", "want"),
    [
        pytest.param({"adminAccess": True}, "", id="of-an-administrator"),
        pytest.param({}, IN_USE, id="exclusive"),
        pytest.param(None, IN_USE, id="that-is-gone"),
    ],
)
async def test_a_claim_of_a_checkpoint_is_looked_up(holder: dict[str, Any] | None, want: str) -> None:
    devices = (Device(pool_name="n", device_name="gpu-0"),)
    record = PreparedClaim(
        uid="uid-a", key=Key("ns", "a"), pods=frozenset({"pod-a"}), drivers={DRIVER: DriverState(devices)}
    )
    node = Node(record)
    if holder is not None:
        node.add("a", **holder)
    if not want:
        await node.preparation.prepare(node.add("b"))
        return
    with pytest.raises(errors.NodeError, match=want):
        await node.preparation.prepare(node.add("b"))


@pytest.mark.parametrize("has_checks", [False, True])
async def test_a_lost_device_ends_the_pod_with_the_gate_only(*, has_checks: bool) -> None:
    node = Node(has_checks=has_checks)
    node.driver.error = "device unavailable: gpu-0 fell off the bus"
    with pytest.raises(errors.NodeError) as caught:
        await node.preparation.prepare(node.add("a"))
    assert isinstance(caught.value, errors.LostDeviceError) is has_checks
    assert str(caught.value).startswith("prepare dynamic resources: NodePrepareResources failed for ResourceClaim a: ")
