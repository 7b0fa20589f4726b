"""Rollback and re-enablement of feature gates with objects in use: nothing is lost, nothing is stuck."""

import contextlib
from collections.abc import AsyncIterator

from drachma.api import gates as features
from drachma.api import resourceclaim, resourceslice
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.store import memory
from drachma.testing import manualclock
from drachma.testing import node as a_node
from tests import firstalpha
from tests.scenarios import controlplane
from tests.scenarios.test_first_alpha import CLAIM, CLASS, PARAMETERS, SLICE, a_pod, claim_of, finish, resources


class _LastingStore(memory.MemoryStore):
    """A store that outlives the servers that close it."""

    async def close(self) -> None:
        return


class History:
    """One cluster over several runs of its control plane, each with gates of its own."""

    def __init__(self) -> None:
        self._store = _LastingStore()
        self._clock = manualclock.ManualClock()

    @contextlib.asynccontextmanager
    async def running(self, gates: features.Gates = features.ALL) -> AsyncIterator[controlplane.ControlPlane]:
        """Run the control plane on the objects that the previous run left."""
        async with controlplane.control_plane(store=self._store, gates=gates, clock=self._clock) as plane:
            yield plane


async def test_first_alpha_is_switched_off_and_on_with_claims_in_use() -> None:
    history = History()
    async with history.running(firstalpha.GATES) as plane:
        await plane.create(a_node("worker-1"))
        await plane.apply(SLICE, CLASS, PARAMETERS, CLAIM, a_pod())
        assert await resources(plane) == ["gpu-1"]
        own = await plane.client.get(resourceclaim.ResourceClaim, "my", namespace="default")
        published = await plane.all_of(resourceslice.ResourceSlice)
    async with history.running() as plane:
        await plane.advance(600)
        kept = await plane.client.get(resourceclaim.ResourceClaim, "my", namespace="default")
        assert (kept.metadata.uid, kept.metadata.deletion_timestamp) == (own.metadata.uid, None)
        assert kept.status == own.status, "the devices stay those of the running pod"
        assert await plane.all_of(resourceslice.ResourceSlice) == published
    async with history.running(firstalpha.GATES) as plane:
        await plane.advance(600)
        assert await resources(plane) == ["gpu-1"]
        assert [each.name for each in (await claim_of(plane)).status.reserved_for] == ["p"]
        await plane.apply(a_pod("next"))
        assert await plane.node_of("next") == "", "the claim is exclusive and its user still runs"
        await finish(plane)
        await plane.advance(60)
        assert await plane.node_of("next") == "worker-1"
        await finish(plane, "next")
        await plane.delete(alpha.ResourceClaim, "my")
        await plane.advance(60)
        assert await plane.all_of(alpha.ResourceClaim) == ()
        assert await plane.all_of(resourceclaim.ResourceClaim) == ()


async def test_a_pod_that_ends_while_first_alpha_is_off_frees_its_claim() -> None:
    history = History()
    async with history.running(firstalpha.GATES) as plane:
        await plane.create(a_node("worker-1"))
        await plane.apply(SLICE, CLASS, PARAMETERS, CLAIM, a_pod())
    async with history.running() as plane:
        await finish(plane)
        await plane.apply(a_pod("meanwhile"))
        assert await plane.node_of("meanwhile") == "worker-1", "pods go on with the claim that stands for it"
        await finish(plane, "meanwhile")
        await plane.delete(resourceclaim.ResourceClaim, "my")
    async with history.running(firstalpha.GATES) as plane:
        await plane.advance(60)
        await plane.apply(a_pod("afterwards"))
        await plane.advance(60)
        assert await plane.node_of("afterwards") == "worker-1"
        assert await resources(plane) == ["gpu-1"]
