"""Decisions about workloads that stencils fill in are those that intents make by themselves, byte for byte."""

import asyncio
import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import hypothesis
import pytest
from hypothesis import strategies as st

from drachma import errors
from drachma.client import local, patches
from drachma.process import queueing
from drachma.queueing.component import ActiveConfiguration, PendingView, resources
from drachma.server import inprocess
from drachma.server.pipeline import stencil
from tests.property import test_stencils as twins
from tests.unit.server import client

CONFIGURATION: Final = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}


class Shape(NamedTuple):
    """A workload and its way through a queue."""

    name: str
    queue: str
    cluster_queue: str
    owner: str
    requests: str
    message: str
    time: str
    """Suffix of transition times."""
    reason: str
    is_stale: bool
    """True if the patches are based on an older version."""
    seconds: int
    """Time that passes before each write."""


class Twin:
    """A server with queueing's kinds and hooks, and a client in its process."""

    def __init__(self, server: client.Client, configured: ActiveConfiguration, stencils: stencil.Stencils) -> None:
        self.clock, self.store, self.configured = server.clock, server.store, configured
        server.app.dispatcher.services.committer._stencils = stencils
        self.client = local.LocalClient(inprocess.InProcess(server.app.dispatcher), manager="component")

    async def act(self, shapes: Sequence[Shape]) -> list[str]:
        """Create, admit and finish workloads. Return the refusals."""
        refusals: list[str] = []
        for each in shapes:
            try:
                await self._run(each)
            except errors.DrachmaError as error:
                refusals.append(str(error))
        return refusals

    async def _run(self, shape: Shape) -> None:
        created = await self.client.create_document(resources.WORKLOADS, _workload(shape))
        before = created["metadata"]
        admission = {
            "clusterQueue": shape.cluster_queue,
            "podSetAssignments": [
                {
                    "name": "main",
                    "count": 2,
                    "flavors": {"cpu": "default"},
                    "resourceUsage": {"cpu": shape.requests},
                }
            ],
        }
        reserved = self._condition("QuotaReserved", shape)
        admitted = await self._patch(before, {"admission": admission, "conditions": [reserved]}, shape)
        finished = self._condition("Finished", shape)
        after = before if shape.is_stale else admitted
        await self._patch(after, {"conditions": [reserved, finished]}, shape)

    def _condition(self, kind: str, shape: Shape) -> dict[str, Any]:
        time = f"{self.clock.now:%Y-%m-%dT%H:%M:%S}{shape.time}"
        message = f"{kind} {shape.message}" if shape.message else ""
        return {
            "type": kind, "status": "True", "reason": shape.reason, "message": message, "lastTransitionTime": time,
        }  # fmt: skip

    async def _patch(self, before: dict[str, Any], status: dict[str, Any], shape: Shape) -> dict[str, Any]:
        self.clock.now += dt.timedelta(seconds=shape.seconds)
        written = await self.client.patch_stored(
            resources.WORKLOADS,
            before["name"],
            namespace="default",
            subresource="status",
            patch=patches.merge({"status": status}, patches.Preconditions(before["uid"], before["resourceVersion"])),
        )
        metadata = written.object.metadata
        return {"name": metadata.name, "uid": metadata.uid, "resourceVersion": metadata.resource_version}

    def history(self) -> list[tuple[str, bytes]]:
        """Return every version of every workload, as it is stored."""
        with self.store.watch("kueue.x-k8s.io/workloads", after=self.store.compacted) as watch:
            return [(each.change, each.record.data) for each in watch.ready()]


def _workload(shape: Shape) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": shape.name, "namespace": "default"}
    if shape.owner:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": shape.owner, "uid": f"uid-{shape.owner}"}
        metadata |= {"ownerReferences": [owner], "labels": {"kueue.x-k8s.io/job-uid": f"uid-{shape.owner}"}}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": shape.requests}}}
    pod_set = {
        "name": "main",
        "count": 2,
        "minCount": 1,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"queueName": shape.queue, "priority": 5, "podSets": [pod_set]},
    }


async def _start(stencils: stencil.Stencils) -> Twin:
    configured = ActiveConfiguration()
    server = await client.start(additions=queueing.additions(configured, PendingView()))
    return Twin(server, configured, stencils)


async def _compare(batches: Sequence[Sequence[Shape]]) -> int:
    """Run the same batches with and without stencils. Return the number of decisions that were filled in."""
    counting = twins.Counting()
    stamped, single = await _start(counting), await _start(twins.NoStencils())
    for batch in batches:
        assert await stamped.act(batch) == await single.act(batch)
        assert stamped.history() == single.history()
    return counting.stamped


def shape(number: int, **changes: Any) -> Shape:
    plain = Shape(
        name=f"job-{number}", queue=f"queue-{number % 3}", cluster_queue=f"cluster-{number % 3}", owner="",
        requests="4", message=f"after {number}s", time="Z", reason="Test", is_stale=False, seconds=1,
    )  # fmt: skip
    return plain._replace(**changes)


SHAPES: Final = st.builds(
    Shape,
    name=twins.PLAIN | twins.ODD,
    queue=twins.PLAIN | twins.ODD,
    cluster_queue=twins.PLAIN | twins.ODD,
    owner=st.sampled_from(["", "", "job-1", "job-2", "long-" * 13 + "1"]),
    requests=st.sampled_from(["4", "4", "1m", "x"]),
    message=st.sampled_from(["after 5s", 'with "quotes"', "", "main", "é"]),
    time=st.sampled_from(["Z", "Z", "Z", "+00:00", ".5Z", ""]),
    reason=st.sampled_from(["Test", "Test", "not a reason"]),
    is_stale=st.booleans(),
    seconds=st.sampled_from([0, 0, 1]),
)


@twins.SETTINGS
@hypothesis.given(st.lists(st.lists(SHAPES, min_size=1, max_size=8), min_size=1, max_size=3))
def test_repeated_writes_equal_single_ones(batches: list[list[Shape]]) -> None:
    asyncio.run(_compare(batches))


@pytest.mark.parametrize(
    ("changes", "want_filled"),
    [
        # Of creation, admission and end, the first of each form is decided by itself, and the second is the specimen.
        pytest.param({}, 3 * 7, id="plain"),
        pytest.param({"owner": "job-x1"}, 3 * 7, id="with-an-owner"),
        pytest.param({"owner": "long-" * 13 + "1"}, 0, id="label-that-is-too-long"),
        pytest.param({"seconds": 0}, 3 * 7, id="in-the-same-second"),
        pytest.param({"requests": "1m"}, 7, id="usage-that-is-refused"),
        pytest.param({"time": "+00:00"}, 7, id="times-of-another-form"),
        pytest.param({"is_stale": True}, 2 * 7, id="conflicts"),
    ],
)
def test_workloads_of_one_form_are_filled_in(changes: dict[str, Any], want_filled: int) -> None:
    batch = [shape(number, **changes) for number in range(8)]
    assert asyncio.run(_compare([batch])) == want_filled


def test_a_new_configuration_counts_in_the_next_write() -> None:
    async def run() -> list[bool]:
        twin = await _start(twins.Counting())
        await twin.act([shape(number) for number in range(5)])
        twin.configured.offer({**CONFIGURATION, "featureGates": {"PartialAdmission": False}})
        await twin.act([shape(number) for number in range(5, 10)])
        return [b'"minCount"' in data for change, data in twin.history() if change == "ADDED"]

    assert asyncio.run(run()) == [True] * 5 + [False] * 5


def test_a_queue_named_like_a_word_is_decided_by_itself() -> None:
    batch = [shape(number, queue="main", cluster_queue="default") for number in range(6)]
    assert asyncio.run(_compare([batch])) == 0


def test_forms_with_different_numbers_of_marks_take_turns() -> None:
    # Both forms have the same number of different marks: one has a message more, the other a name more.
    alike = [shape(number, queue="queue-0", cluster_queue="queue-0") for number in range(6)]
    without_message = [shape(number, message="") for number in range(6, 12)]
    filled = asyncio.run(_compare([alike, without_message, [shape(12), shape(13, message="")]]))
    assert filled >= 3 * (5 + 5)
