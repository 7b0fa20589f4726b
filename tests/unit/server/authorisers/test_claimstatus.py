"""Parts of a claim's status, by permission."""

from typing import Any

import pytest

from tests.unit.server import client, people
from tests.unit.server.client import CLAIMS, Client
from tests.unit.server.people import MERGE, rule

GROUP = "resource.k8s.io"
STATUS = f"{CLAIMS}/c/status"
DEVICE = {"driver": "d.example.com", "pool": "p", "device": "dev"}


def _allocated(node: str) -> dict[str, Any]:
    results = [{"request": "gpu", **DEVICE}]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}


async def _patch(who: Client, **status: Any) -> client.Answer:
    return await who.call("PATCH", STATUS, {"status": status}, content_type=MERGE)


@pytest.fixture
async def admin() -> Client:
    server = await people.start()
    await server.call("POST", CLAIMS, client.claim())
    return server


async def test_the_scheduler_allocates_and_says_nothing_of_devices(admin: Client) -> None:
    scheduler = admin.showing("scheduler")
    assert (await _patch(scheduler, allocation=_allocated("n1"))).code == 200
    refused = await _patch(scheduler, devices=[DEVICE])
    refusal = (
        'resourceclaims.resource.k8s.io "d.example.com" is forbidden: User "system:kube-scheduler" cannot '
        'arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace '
        '"default"'
    )
    message = (
        'ResourceClaim.resource.k8s.io "c" is invalid: status.devices: Forbidden: changing status.devices requires '
        f'resource="resourceclaims/driver", verb="[arbitrary-node:patch]" permission: {refusal}'
    )
    assert (refused.code, refused.body["message"]) == (422, message)


async def test_a_driver_speaks_of_devices_on_its_node(admin: Client) -> None:
    rules = (
        rule("get patch update", "resourceclaims/status", group=GROUP),
        rule("associated-node:patch", "resourceclaims/driver", group=GROUP, resourceNames=["d.example.com"]),
    )
    await people.grant(admin, "driver", *rules)
    driver = admin.showing("driver")
    await _patch(admin, allocation=_allocated("n1"))
    assert (await _patch(driver, devices=[DEVICE])).code == 200
    refused = await _patch(driver, allocation=None)
    assert refused.body["message"].startswith(
        'ResourceClaim.resource.k8s.io "c" is invalid: status.allocation: Forbidden: changing status.allocation or '
        'status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: '
    )
    await _patch(admin, allocation=None)
    await _patch(admin, allocation=_allocated("n2"))
    assert (await _patch(driver, devices=[DEVICE])).code == 422
