"""The in-process client against a server: what it shares, and what it is refused."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drachma import errors
from drachma.api import resourceclaim
from drachma.client import local, patches, protocol
from drachma.server import inprocess
from drachma.server.wire import requests
from drachma.testing import claim
from tests.unit.server.client import Client

Claim = resourceclaim.ResourceClaim


@pytest_asyncio.fixture
async def inside(server: Client) -> AsyncIterator[local.LocalClient]:
    async with local.LocalClient(inprocess.InProcess(server.app.services)) as client:
        yield client


def new(name: str = "c") -> Claim:
    return claim(name).request("gpu", device_class="gpu.example.com").build()


async def test_a_version_is_one_object_for_who_writes_reads_and_watches(inside: local.LocalClient) -> None:
    version = (await inside.list(Claim)).resource_version
    created = await inside.create(new())
    async with inside.watch(Claim, resource_version=version) as watch:
        (event,) = await watch.batch()
        assert event == protocol.Event(protocol.Change.ADDED, created)
        assert event.object is created
        assert await inside.get(Claim, "c", namespace="default") is created
        patched = await inside.patch(
            Claim, "c", namespace="default", patch=patches.merge({"metadata": {"labels": {"a": "b"}}})
        )
        assert patched.metadata.labels == {"a": "b"}
        assert (await watch.batch())[0].object is patched


async def test_a_patch_that_changes_nothing_answers_with_what_is_there(inside: local.LocalClient) -> None:
    created = await inside.create(new())
    patch = patches.merge({"metadata": {"name": "c"}})
    assert await inside.patch(Claim, "c", namespace="default", patch=patch) is created


async def test_the_last_finalizer_answers_with_what_is_gone(inside: local.LocalClient) -> None:
    created = await inside.create(new())
    finalizers = {"metadata": {"finalizers": ["example.com/keep"]}}
    await inside.patch(Claim, "c", namespace="default", patch=patches.merge(finalizers))
    await inside.delete(Claim, "c", namespace="default")
    gone = await inside.patch(
        Claim, "c", namespace="default", patch=patches.merge({"metadata": {"finalizers": None}}, patches.same(created))
    )
    assert gone.metadata.uid == created.metadata.uid
    with pytest.raises(errors.ObjectNotFoundError):
        await inside.get(Claim, "c", namespace="default")


@pytest.mark.parametrize(
    ("verb", "place", "want"),
    [
        pytest.param(
            "update",
            local.Place(group="", version="v1", plural="nothings", namespace="default", name="x"),
            "could not find the requested resource",
            id="no-such-resource",
        ),
        pytest.param(
            "update",
            local.Place(group="", version="v1", plural="pods", namespace="default", name="x", subresource="nothing"),
            "could not find the requested resource",
            id="no-such-subresource",
        ),
        pytest.param(
            "create",
            local.Place(group="", version="v1", plural="pods", namespace="default", name="x", subresource="status"),
            "not allow this method",
            id="no-such-verb",
        ),
        pytest.param(
            "update",
            local.Place(group="", version="v1", plural="pods", name="x"),
            "not allow this method",
            id="nowhere",
        ),
    ],
)
async def test_what_is_not_served_is_refused(server: Client, verb: str, place: local.Place, want: str) -> None:
    backend = inprocess.InProcess(server.app.services)
    for _ in range(2):
        with pytest.raises(errors.RefusedError, match=want):
            await backend.write(verb, place, body=b"{}", media_type="application/json", query={})


async def test_bodies_have_the_limit_of_those_from_the_wire(server: Client) -> None:
    backend = inprocess.InProcess(server.app.services)
    place = local.Place(group="", version="v1", plural="pods", namespace="default")
    body = bytes(requests.BODY_LIMIT + 1)
    with pytest.raises(errors.RefusedError, match=f"limit is {requests.BODY_LIMIT}"):
        await backend.write("create", place, body=body, media_type="application/json", query={})
