"""Events: what is written of what components record, on a server in process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest

from drachma import errors
from drachma.api import event, node, pod
from drachma.client import Client, patches, protocol, transactions
from drachma.runtime import events
from drachma.testing import node as build_node
from drachma.testing import pod as build_pod
from tests.scenarios import clusters
from tests.unit.client.clocks import FakeClock


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with clusters.local_cluster() as cluster:
        yield cluster.client


@contextlib.asynccontextmanager
async def recording(client: Client, clock: FakeClock, *, component: str = "tester") -> AsyncIterator[events.Recorder]:
    recorder = events.Recorder(client, component=component, clock=clock)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def a_pod(name: str = "p") -> pod.Pod:
    return build_pod(name).uid(f"uid-of-{name}").build()


async def written(client: Client) -> list[str]:
    """Every event there is, with its count."""
    listed = (await client.list(event.Event)).items
    lines = [f"{e.involved_object.name} {e.type} {e.reason} x{e.count}: {e.message}" for e in listed]
    return sorted(lines)


async def test_components_that_record_at_the_same_time_write_two_events(client: Client) -> None:
    clock = FakeClock()
    async with recording(client, clock) as first, recording(client, clock, component="another") as second:
        first.record(a_pod(), type=events.NORMAL, reason="Created", message="one")
        second.record(a_pod(), type=events.NORMAL, reason="Started", message="two")
        await first.flush()
        await second.flush()
    assert await written(client) == ["p Normal Created x1: one", "p Normal Started x1: two"]


async def test_an_event_has_all_that_kubectl_shows(client: Client) -> None:
    clock = FakeClock()
    async with recording(client, clock) as recorder:
        recorder.record(a_pod(), type=events.WARNING, reason="Failed", message="no luck")
        await recorder.flush()
    (stored,) = (await client.list(event.Event)).items
    assert stored.metadata.namespace == "default"
    assert stored.metadata.name.startswith("p.")
    assert stored.involved_object == event.ObjectReference(
        kind="Pod", namespace="default", name="p", uid="uid-of-p", api_version="v1"
    )
    assert (stored.type, stored.reason, stored.message, stored.count) == ("Warning", "Failed", "no luck", 1)
    assert (stored.source.component, stored.reporting_component) == ("tester", "tester")
    assert stored.first_timestamp == stored.last_timestamp == clock.utc()


async def test_events_about_cluster_scope_are_in_the_default_namespace(client: Client) -> None:
    async with recording(client, FakeClock()) as recorder:
        host: node.Node = build_node("n").build()
        recorder.record(host, type=events.NORMAL, reason="NodeReady", message="is ready")
        await recorder.flush()
    (stored,) = (await client.list(event.Event)).items
    assert (stored.metadata.namespace, stored.involved_object.namespace) == ("default", "")


async def test_the_same_again_is_counted(client: Client) -> None:
    clock = FakeClock()
    async with recording(client, clock) as recorder:
        for _ in range(2):
            recorder.record(a_pod(), type=events.WARNING, reason="Failed", message="no luck")
        await recorder.flush()
        began = clock.utc()
        clock.advance(5)
        recorder.record(a_pod(), type=events.WARNING, reason="Failed", message="no luck")
        recorder.record(a_pod("q"), type=events.WARNING, reason="Failed", message="no luck")
        await recorder.flush()
    assert await written(client) == ["p Warning Failed x3: no luck", "q Warning Failed x1: no luck"]
    repeated = next(e for e in (await client.list(event.Event)).items if e.count == 3)
    assert (repeated.first_timestamp, repeated.last_timestamp) == (began, clock.utc())


async def test_a_deleted_event_begins_anew(client: Client) -> None:
    async with recording(client, FakeClock()) as recorder:
        for _ in range(2):
            recorder.record(a_pod(), type=events.WARNING, reason="Failed", message="no luck")
            await recorder.flush()
            for each in (await client.list(event.Event)).items:
                await client.delete(event.Event, each.metadata.name, namespace="default")
        recorder.record(a_pod(), type=events.WARNING, reason="Failed", message="no luck")
        await recorder.flush()
    assert await written(client) == ["p Warning Failed x3: no luck"]


async def test_similar_events_are_combined(client: Client) -> None:
    async with recording(client, FakeClock()) as recorder:
        for number in range(12):
            recorder.record(a_pod(), type=events.WARNING, reason="Failed", message=f"attempt {number}")
            await recorder.flush()
    lines = await written(client)
    assert len(lines) == 10
    assert "p Warning Failed x3: (combined from similar events): attempt 11" in lines


async def test_a_flood_is_cut_off(client: Client) -> None:
    clock = FakeClock()
    async with recording(client, clock) as recorder:
        for number in range(30):
            recorder.record(a_pod(), type=events.WARNING, reason=f"Reason{number}", message="no luck")
        recorder.record(a_pod("other"), type=events.WARNING, reason="Failed", message="no luck")
        await recorder.flush()
        assert len(await written(client)) == 26, "25 for one object, and others are not concerned"
        clock.advance(301)
        for number in range(2):
            recorder.record(a_pod(), type=events.WARNING, reason=f"Later{number}", message="no luck")
        await recorder.flush()
    assert len(await written(client)) == 27


async def test_a_name_that_events_cannot_have(client: Client) -> None:
    async with recording(client, FakeClock()) as recorder:
        reference = event.ObjectReference(kind="Strange", name="A_Name", namespace="default")
        recorder.record(reference, type=events.NORMAL, reason="Seen", message="is strange")
        await recorder.flush()
    assert await written(client) == ["A_Name Normal Seen x1: is strange"]


class _Failing:
    """A client whose first creates fail."""

    def __init__(self, client: Client, failures: list[errors.DrachmaError]) -> None:
        self._client = client
        self._failures = failures

    async def create(self, made: event.Event) -> event.Event:
        if self._failures:
            raise self._failures.pop(0)
        return await self._client.create(made)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


async def test_a_server_that_cannot_be_reached_is_tried_again(client: Client) -> None:
    clock = FakeClock()
    failing = _Failing(client, [errors.UnreachableError("gone"), errors.UnreachableError("gone")])
    async with recording(cast(protocol.Client, failing), clock) as recorder:
        recorder.record(a_pod(), type=events.NORMAL, reason="Seen", message="is there")
        await recorder.flush()
    assert await written(client) == ["p Normal Seen x1: is there"]
    assert clock.pauses[0] <= 10
    assert clock.pauses[1:] == [10]


async def test_a_refused_event_is_dropped(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    async with recording(client, FakeClock()) as recorder:
        nowhere = build_pod("p", namespace="nowhere").build()
        recorder.record(nowhere, type=events.NORMAL, reason="Seen", message="is there")
        recorder.record(a_pod(), type=events.NORMAL, reason="Seen", message="is there")
        await recorder.flush()
    assert await written(client) == ["p Normal Seen x1: is there"]
    assert "event refused: Pod nowhere/p" in caplog.text


class _EventsGroupOnly:
    """A client whose role has events of events.k8s.io only."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.refusals = 0

    async def create(self, made: event.Event) -> event.Event:
        self.refusals += 1
        raise errors.ForbiddenError({"message": "events is forbidden"})

    async def patch(self, *_: Any, **__: Any) -> event.Event:
        self.refusals += 1
        raise errors.ForbiddenError({"message": "events is forbidden"})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


async def test_a_role_may_have_events_of_the_newer_group_only(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    clock, restricted = FakeClock(), _EventsGroupOnly(client)
    async with recording(cast(protocol.Client, restricted), clock) as recorder:
        for number in range(3):
            recorder.record(a_pod(), type=events.WARNING, reason="Failed", message="no luck")
            recorder.record(a_pod(f"q{number}"), type=events.NORMAL, reason="Seen", message="é" * 600)
            await recorder.flush()
    stored = {each.involved_object.name: each for each in (await client.list(event.Event)).items}
    assert sorted(stored) == ["p", "q0", "q1", "q2"]
    assert (stored["p"].type, stored["p"].reason, stored["p"].message) == ("Warning", "Failed", "no luck")
    assert stored["p"].reporting_component == "tester"
    assert stored["q0"].message == "é" * 512
    document = await client.get_document(event.Event, stored["p"].metadata.name, namespace="default")
    assert document["series"]["count"] == 3
    assert restricted.refusals == 2, "the first two events, which are written at once"
    assert caplog.text == ""


async def test_a_flood_of_events_is_no_flood_of_log_lines(
    client: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_PENDING", 20)
    async with recording(client, FakeClock()) as recorder:
        for number in range(50):
            subject = build_pod(f"p{number:02}").build()
            recorder.record(subject, type=events.NORMAL, reason="Seen", message="is there")
        await recorder.flush()
    assert await written(client) == [f"p{number:02} Normal Seen x1: is there" for number in range(20)]
    assert [line.getMessage().partition(": Normal")[0] for line in caplog.records] == [
        "too many events wait to be written, dropped: Pod default/p20",
        "too many events wait to be written, dropped in all: 30",
    ]


class _Commits:
    """A client that counts the commits and other writes that reach the server."""

    def __init__(self, client: Client, *, offers_commits: bool = True) -> None:
        self._client = client
        self.sizes: list[int] = []
        if offers_commits:
            self.commit = self._commit

    async def _commit(self, changes: Sequence[transactions.Change]) -> Sequence[Any]:
        self.sizes.append(len(changes))
        return await cast(transactions.Transactions, self._client).commit(changes)

    async def patch_stored(self, *arguments: Any, **options: Any) -> Any:
        self.sizes.append(1)
        return await self._client.patch_stored(*arguments, **options)

    async def create(self, made: event.Event) -> event.Event:
        self.sizes.append(1)
        return await self._client.create(made)

    def __getattr__(self, name: str) -> Any:
        if name == "commit":
            raise AttributeError(name)
        return getattr(self._client, name)


def _label(value: str, *, name: str = "n") -> transactions.PatchStored:
    return transactions.PatchStored(node.Node, name, patches.merge({"metadata": {"labels": {"phase": value}}}))


@pytest.mark.parametrize(
    ("offers_commits", "want_sizes"),
    [pytest.param(True, [3, 1], id="one-commit"), pytest.param(False, [1, 1, 1, 1], id="one-after-the-other")],
)
async def test_a_change_takes_new_events_along(client: Client, *, offers_commits: bool, want_sizes: list[int]) -> None:
    counting = _Commits(client, offers_commits=offers_commits)
    await client.create(build_node("n").build())
    async with recording(cast(protocol.Client, counting), FakeClock()) as recorder:
        recorder.record(a_pod(), type=events.NORMAL, reason="Waiting", message="recorded before")
        report = [recorder.event(a_pod(), type=events.NORMAL, reason="Labelled", message="by this change")]
        stored = await recorder.patch(_label("one"), reported=report)
        assert (stored.object.metadata.labels["phase"], b'"phase":"one"' in stored.source.data) == ("one", True)
        await recorder.flush()
        again = [recorder.event(a_pod(), type=events.NORMAL, reason="Labelled", message="by this change")]
        await recorder.patch(_label("two"), reported=again)
        await recorder.flush()
    assert await written(client) == ["p Normal Labelled x2: by this change", "p Normal Waiting x1: recorded before"]
    assert counting.sizes == want_sizes, "a repeated event is not created, and its patch is not counted here"


async def test_the_account_that_makes_the_change_writes_the_events(client: Client) -> None:
    own, other = _Commits(client), _Commits(client)
    await client.create(build_node("n").build())
    async with recording(cast(protocol.Client, own), FakeClock()) as recorder:
        recorder.record(a_pod(), type=events.NORMAL, reason="Waiting", message="recorded before")
        await recorder.patch(_label("one"), client=cast(protocol.Client, other))
        await recorder.flush()
    assert (own.sizes, other.sizes) == ([], [2])


async def test_a_refused_change_is_not_reported(client: Client) -> None:
    async with recording(client, FakeClock()) as recorder:
        recorder.record(a_pod(), type=events.NORMAL, reason="Waiting", message="recorded before")
        report = [recorder.event(a_pod(), type=events.NORMAL, reason="Labelled", message="by this change")]
        with pytest.raises(errors.ObjectNotFoundError):
            await recorder.patch(_label("one", name="absent"), reported=report)
        await recorder.flush()
    assert await written(client) == ["p Normal Waiting x1: recorded before"]


async def test_a_refused_event_does_not_prevent_the_change(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    await client.create(build_node("n").build())
    async with recording(client, FakeClock()) as recorder:
        nowhere = build_pod("q", namespace="nowhere").build()
        recorder.record(nowhere, type=events.NORMAL, reason="Seen", message="is there")
        report = [recorder.event(a_pod(), type=events.NORMAL, reason="Labelled", message="by this change")]
        stored = await recorder.patch(_label("one"), reported=report)
        await recorder.flush()
    assert stored.object.metadata.labels["phase"] == "one"
    assert await written(client) == ["p Normal Labelled x1: by this change"]
    assert "event refused: Pod nowhere/q" in caplog.text
