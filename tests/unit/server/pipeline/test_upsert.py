"""Updates and applies of what is not there."""

import pytest

from tests.unit.server import people
from tests.unit.server.client import Client
from tests.unit.server.people import rule


@pytest.fixture
async def admin() -> Client:
    return await people.start()


async def test_who_may_update_may_not_create(admin: Client) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    await people.grant(admin, "ann", rule("update patch", "leases", group="coordination.k8s.io"), namespace="default")
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    ann = admin.showing("ann")
    message = (
        'leases.coordination.k8s.io "l" is forbidden: User "ann" cannot create resource "leases" in API group '
        '"coordination.k8s.io" in the namespace "default"'
    )
    assert (await ann.call("PUT", f"{leases}/l", lease)).body["message"] == message
    apply = "application/apply-patch+yaml"
    applied = await ann.call("PATCH", f"{leases}/l?fieldManager=m", lease, content_type=apply)
    assert applied.body["message"] == message
    made = (await admin.call("PUT", f"{leases}/l", lease)).body
    assert (await ann.call("PUT", f"{leases}/l", made)).code == 200
