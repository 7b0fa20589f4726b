"""Quotas hold writes: what is charged, with what, and what is refused in which words."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from drachma import errors
from drachma.api import resourceclaim, resourcequota
from drachma.client import local, patches, transactions
from drachma.server import inprocess
from drachma.testing import claim as a_claim
from tests.unit.server import client
from tests.unit.server.client import CLAIMS, PODS, Client

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"


async def quota(server: Client, hard: dict[str, str], used: dict[str, str] | None = None, name: str = "q") -> None:
    """A quota as its controller leaves it."""
    made = await server.call("POST", QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard}})
    assert made.code == 201
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
    answer = await server.call("PATCH", f"{QUOTAS}/{name}/status", {"status": status}, content_type=MERGE)
    assert answer.code == 200


async def used(server: Client, name: str = "q") -> dict[str, str]:
    used_now: dict[str, str] = (await server.call("GET", f"{QUOTAS}/{name}")).body["status"]["used"]
    return used_now


def claim(name: str, count: int = 1) -> dict[str, Any]:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]
    return {**client.claim(name), "spec": {"devices": {"requests": requests}}}


async def test_a_new_object_is_charged(server: Client) -> None:
    await quota(server, {DEVICES: "3", "count/resourceclaims.resource.k8s.io": "9"})
    assert (await server.call("POST", CLAIMS, claim("a", 2))).code == 201
    assert await used(server) == {DEVICES: "2", "count/resourceclaims.resource.k8s.io": "1"}
    answer = await server.call("POST", CLAIMS, claim("b", 2))
    assert answer.code == 403
    assert answer.body["message"] == (
        'resourceclaims.resource.k8s.io "b" is forbidden: exceeded quota: q, '
        f"requested: {DEVICES}=2, used: {DEVICES}=2, limited: {DEVICES}=3"
    )
    assert await used(server) == {DEVICES: "2", "count/resourceclaims.resource.k8s.io": "1"}


async def test_the_charge_is_the_servers(server: Client) -> None:
    await quota(server, {"configmaps": "3", "count/configmaps": "3"})
    await server.call("POST", MAPS, {"metadata": {"name": "a"}})
    entries = (await server.call("GET", f"{QUOTAS}/q")).body["metadata"]["managedFields"]
    fields = {entry["manager"]: entry["fieldsV1"] for entry in entries if entry.get("subresource") == "status"}
    assert fields["kube-apiserver"] == {"f:status": {"f:used": {"f:configmaps": {}, "f:count/configmaps": {}}}}
    del fields["kube-apiserver"]
    assert [each["f:status"]["f:used"] for each in fields.values()] == [{}]


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        pytest.param(CLAIMS, {**claim("x"), "spec": {"devices": {"requests": [{"name": "NO"}]}}}, 422, id="invalid"),
        pytest.param(CLAIMS, claim("taken"), 409, id="name-is-taken"),
        pytest.param(f"{CLAIMS}?dryRun=All", claim("y"), 201, id="dry-run"),
    ],
)
async def test_what_is_not_stored_is_not_charged(server: Client, path: str, body: Any, code: int) -> None:
    await server.call("POST", CLAIMS, claim("taken"))
    await quota(server, {DEVICES: "5"})
    assert (await server.call("POST", path, body)).code == code
    assert await used(server) == {DEVICES: "0"}


async def test_refusals_come_after_validation_and_before_the_name(server: Client) -> None:
    await server.call("POST", CLAIMS, claim("a"))
    await quota(server, {DEVICES: "0"})
    assert (await server.call("POST", CLAIMS, claim("a"))).code == 403
    assert (await server.call("POST", f"{CLAIMS}?dryRun=All", claim("b"))).code == 403
    invalid = {**claim("a"), "spec": {"devices": {"requests": [{"name": "NO"}]}}}
    assert (await server.call("POST", CLAIMS, invalid)).code == 422


async def test_an_apply_of_nothing_is_a_new_object(server: Client) -> None:
    await quota(server, {"configmaps": "1"})
    body = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"}}'
    codes = []
    for name in ("a", "a", "b"):
        path = f"{MAPS}/{name}?fieldManager=me"
        answer = await server.call("PATCH", path, body % name, content_type="application/apply-patch+yaml")
        codes.append(answer.code)
    assert codes == [201, 200, 403]
    assert await used(server) == {"configmaps": "1"}


async def test_a_quota_that_is_not_in_force_yet_counts_nothing(server: Client) -> None:
    await server.call("POST", QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}})
    assert (await server.call("POST", MAPS, {"metadata": {"name": "a"}})).code == 201


async def test_a_quota_counts_in_its_namespace_only(server: Client) -> None:
    await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    await quota(server, {"configmaps": "0"})
    other = MAPS.replace("default", "other")
    assert (await server.call("POST", other, {"metadata": {"name": "a"}})).code == 201


async def test_a_pod_says_what_it_needs(server: Client) -> None:
    await quota(server, {"limits.cpu": "1"})
    answer = await server.call("POST", PODS, client.pod("p"))
    assert answer.code == 403
    assert answer.body["message"].startswith('pods "p" is forbidden: failed quota: q: must specify limits.cpu for: ')


async def test_fifty_clients_at_once_get_what_there_is(server: Client) -> None:
    await quota(server, {DEVICES: "20"})
    await quota(server, {"count/resourceclaims.resource.k8s.io": "15"}, name="r")
    answers = await asyncio.gather(*(server.call("POST", CLAIMS, claim(f"c{number}")) for number in range(50)))
    assert Counter(answer.code for answer in answers) == {201: 15, 403: 35}
    assert await used(server) == {DEVICES: "15"}
    assert await used(server, "r") == {"count/resourceclaims.resource.k8s.io": "15"}


async def test_more_clients_than_there_are_attempts_all_get_through(server: Client) -> None:
    await quota(server, {"configmaps": "1000"})
    made = (server.call("POST", MAPS, {"metadata": {"name": f"m{number}"}}) for number in range(150))
    assert {answer.code for answer in await asyncio.gather(*made)} == {201}
    assert await used(server) == {"configmaps": "150"}


async def test_a_limit_that_changes_meanwhile_counts(server: Client) -> None:
    await quota(server, {"configmaps": "5"})

    status = {"status": {"hard": {"configmaps": "2"}}}
    answers = await asyncio.gather(
        server.call("PATCH", f"{QUOTAS}/q/status", status, content_type=MERGE),
        *(server.call("POST", MAPS, {"metadata": {"name": f"m{number}"}}) for number in range(4)),
    )
    assert Counter(answer.code for answer in answers) == {200: 1, 201: 2, 403: 2}
    assert await used(server) == {"configmaps": "2"}


def groups(server: Client) -> local.LocalClient:
    return local.LocalClient(inprocess.InProcess(server.app.dispatcher))


def typed(name: str, count: int) -> resourceclaim.ResourceClaim:
    return a_claim(name).request("r", device_class="gpu", count=count).build()


async def test_what_is_made_together_is_charged_together(server: Client) -> None:
    await quota(server, {DEVICES: "3"})
    async with groups(server) as made:
        with pytest.raises(errors.CommitRefusedError, match=r"exceeded quota: q, .* used: .*=2, limited"):
            await made.commit([transactions.Create(typed("a", 2)), transactions.Create(typed("b", 2))])
        assert await used(server) == {DEVICES: "0"}
        await made.commit([transactions.Create(typed("a", 2)), transactions.Create(typed("b", 1))])
    assert await used(server) == {DEVICES: "3"}


@pytest.mark.parametrize("is_charged_first", [pytest.param(True, id="after"), pytest.param(False, id="before")])
async def test_a_quota_may_change_in_the_commit_that_charges_it(server: Client, is_charged_first: bool) -> None:
    await quota(server, {DEVICES: "3"})
    creation = transactions.Create(typed("a", 2))
    change = transactions.Patch(
        resourcequota.ResourceQuota,
        "q",
        patches.merge({"metadata": {"labels": {"a": "b"}}}),
        namespace="default",
    )
    async with groups(server) as made:
        await made.commit([creation, change] if is_charged_first else [change, creation])
    assert await used(server) == {DEVICES: "2"}
    assert (await server.call("GET", f"{QUOTAS}/q")).body["metadata"]["labels"] == {"a": "b"}


async def test_storage_is_charged_by_class(server: Client) -> None:
    gold = "gold.storageclass.storage.k8s.io/requests.storage"
    await quota(server, {"requests.storage": "3Gi", gold: "1Gi", "persistentvolumeclaims": "5"})
    path = "/api/v1/namespaces/default/persistentvolumeclaims"

    def claim_of(name: str, size: str, **spec: str) -> dict[str, Any]:
        resources = {"requests": {"storage": size}}
        return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **spec}}

    assert (await server.call("POST", path, claim_of("a", "1Gi", storageClassName="gold"))).code == 201
    refused = await server.call("POST", path, claim_of("b", "1Gi", storageClassName="gold"))
    assert refused.body["message"] == (
        f'persistentvolumeclaims "b" is forbidden: exceeded quota: q, requested: {gold}=1Gi, used: {gold}=1Gi, '
        f"limited: {gold}=1Gi"
    )
    assert (await server.call("POST", path, claim_of("c", "2Gi"))).code == 201
    assert await used(server) == {"requests.storage": "3Gi", gold: "1Gi", "persistentvolumeclaims": "2"}
