"""Informers against a client whose answers are written down: what they ask, know and tell."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from drachma import errors
from drachma.api import pod, podgroup, resourceclaim
from drachma.client import backoff, protocol, refusal, target
from drachma.client.protocol import Change, Event
from drachma.runtime import Informers, defects
from drachma.runtime.informer import Handler
from drachma.testing import claim
from drachma.testing.manualclock import ManualClock
from tests.unit.client.clocks import FakeClock
from tests.unit.client.scripts import (
    Batch,
    ScriptedClient,
    added,
    bookmark,
    deleted,
    listing,
    modified,
    version,
)

GONE = refusal.error({"message": "too old resource version", "reason": "Expired", "code": 410})
BROKEN = errors.UnreachableError("GET https://server/api/v1/pods: the watch broke off")
STEADY = backoff.Backoff(initial=1.0, factor=2.0, maximum=4.0, jitter=0.0)


class Journal:
    """What a handler is told, in order."""

    def __init__(self, name: str = "", lines: list[str] | None = None) -> None:
        self.lines = lines if lines is not None else []
        prefix = f"{name}: " if name else ""
        self.handler: Handler[pod.Pod] = Handler(
            added=lambda new: self.lines.append(f"{prefix}added {shown(new)}"),
            updated=lambda old, new: self.lines.append(f"{prefix}updated {shown(old)} to {shown(new)}"),
            deleted=lambda gone: self.lines.append(f"{prefix}deleted {shown(gone)}"),
        )


def shown(known: pod.Pod) -> str:
    return f"{known.metadata.name}@{known.metadata.resource_version}"


async def follow(
    lists: Sequence[protocol.Listing[Any] | Exception], watches: Sequence[Sequence[Batch] | Exception]
) -> tuple[list[str], list[str], list[float], list[str]]:
    """Runs an informer until its script is over: what it told and asked, how it waited, what it knows."""
    script, clock, journal = ScriptedClient(lists=lists, watches=watches), FakeClock(), Journal()
    async with Informers(script.client, clock=clock, rng=random.Random(1), pauses=STEADY) as informers:
        informer = informers.of(pod.Pod)
        informer.add_handler(journal.handler)
        await script.finished.wait()
        cached = sorted(map(shown, informer.cache))
    return journal.lines, script.calls, clock.pauses, cached


async def test_list_then_watch() -> None:
    calls, requests, pauses, cached = await follow(
        [listing(10, version("a", 3), version("b", 5))],
        [[[modified("a", 11), added("c", 12)], [deleted("b", 13)]]],
    )
    assert calls == ["added a@3", "added b@5", "updated a@3 to a@11", "added c@12", "deleted b@13"]
    assert requests == ["list pods limit=500", "watch pods from=10", "watch pods from=13"]
    assert pauses == []
    assert cached == ["a@11", "c@12"]


async def test_pages_are_put_together() -> None:
    calls, requests, _, _ = await follow([listing(10, version("a", 3), token="t"), listing(10, version("b", 5))], [])
    assert calls == ["added a@3", "added b@5"]
    assert requests == ["list pods limit=500", "list pods limit=500 from=t", "watch pods from=10"]


async def test_a_list_whose_token_expires_is_read_in_one_go() -> None:
    calls, requests, pauses, _ = await follow([listing(10, version("a", 3), token="t"), GONE, listing(12)], [])
    assert calls == []
    assert requests == ["list pods limit=500", "list pods limit=500 from=t", "list pods limit=0", "watch pods from=12"]
    assert pauses == []


async def test_a_broken_watch_goes_on_where_it_was() -> None:
    calls, requests, pauses, cached = await follow([listing(10)], [[[added("a", 11)], BROKEN], [[modified("a", 12)]]])
    assert calls == ["added a@11", "updated a@11 to a@12"]
    assert requests == ["list pods limit=500", "watch pods from=10", "watch pods from=11", "watch pods from=12"]
    assert pauses == [1.0]
    assert cached == ["a@12"]


async def test_bookmarks_move_the_place_to_go_on_from() -> None:
    calls, requests, _, _ = await follow([listing(10)], [[[bookmark(500)]]])
    assert calls == []
    assert requests == ["list pods limit=500", "watch pods from=10", "watch pods from=500"]


@pytest.mark.parametrize(
    "watch",
    [pytest.param(GONE, id="when-opened"), pytest.param([[added("c", 11)], GONE], id="in-the-middle")],
)
async def test_a_watch_that_is_too_old_lists_again_and_tells_the_difference(watch: Sequence[Batch] | Exception) -> None:
    first = listing(10, version("stays", 1), version("changes", 2), version("goes", 3), version("again", 4))
    second = listing(
        50, version("stays", 1), version("changes", 20), version("comes", 30), version("again", 40, uid="another")
    )
    calls, requests, pauses, cached = await follow([first, second], [watch])
    # What went is told first, and an object made anew is not taken for a change of the old one.
    deletions = ["added c@11", "deleted goes@3", "deleted c@11"] if isinstance(watch, list) else ["deleted goes@3"]
    assert calls[4:] == [
        *deletions,
        "updated changes@2 to changes@20",
        "added comes@30",
        "deleted again@4",
        "added again@40",
    ]
    assert requests[-2:] == ["list pods limit=500", "watch pods from=50"]
    assert pauses == [1.0]
    assert cached == ["again@40", "changes@20", "comes@30", "stays@1"]


async def test_pauses_grow_and_begin_anew_after_success() -> None:
    failures = [BROKEN, BROKEN, BROKEN, BROKEN]
    _, _, pauses, _ = await follow([*failures, listing(10)], [[[bookmark(11)], BROKEN]])
    assert pauses == [1.0, 2.0, 4.0, 4.0, 1.0]


async def test_a_watch_that_ends_at_once_and_silent_is_not_asked_again_at_once() -> None:
    _, requests, pauses, _ = await follow([listing(10)], [[], []])
    assert requests == ["list pods limit=500", *["watch pods from=10"] * 3]
    assert pauses == [1.0, 2.0]


async def test_what_is_wrong_can_be_seen_until_it_is_over() -> None:
    script, failures = ScriptedClient(lists=[BROKEN, listing(10)], watches=[]), []

    class WatchedClock(FakeClock):
        async def sleep(self, seconds: float) -> None:
            failures.append((informer.failure, informer.is_synced))
            await super().sleep(seconds)

    async with Informers(script.client, clock=WatchedClock(), pauses=STEADY) as informers:
        informer = informers.of(pod.Pod)
        assert not informer.is_synced
        await informers.wait_synced()
        assert informer.is_synced
        await script.finished.wait()
        assert (informer.failure, informer.resource_version) == (None, "10")
    assert failures == [(BROKEN, False)]


async def test_a_failure_is_logged_when_it_begins_then_rarely_and_its_end_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    denied = refusal.error({"message": "pods is forbidden", "reason": "Forbidden", "code": 403})
    script = ScriptedClient(lists=[*[denied] * 30, listing(10)], watches=[])
    with caplog.at_level("INFO", logger="drachma.runtime.informer"):
        async with Informers(script.client, clock=FakeClock(), rng=random.Random(1), pauses=STEADY) as informers:
            informer = informers.of(pod.Pod)
            assert informers.problems() == ["pods: not listed yet"]
            await informer.wait_synced()
            assert not informers.problems()
    # Pauses of 1, 2, 4, 4, ... seconds: 30 failures take 115 s, and lines are 5, 10, 20, 40, ... seconds apart.
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert 3 < len(warnings) < 8
    assert set(warnings) == {"pods: pods is forbidden; trying again"}
    assert caplog.records[-1].getMessage() == "pods: the API server answers again"


async def test_handlers_are_told_in_order_and_late_ones_of_everything() -> None:
    script, lines = ScriptedClient(lists=[listing(10, version("a", 3))], watches=[]), list[str]()
    async with Informers(script.client, clock=FakeClock()) as informers:
        informer = informers.of(pod.Pod)
        informer.add_handler(Journal("first", lines).handler)
        informer.add_handler(Journal("second", lines).handler)
        await script.finished.wait()
        informer.add_handler(Journal("late", lines).handler)
    assert lines == ["first: added a@3", "second: added a@3", "late: added a@3"]


async def test_components_share_an_informer() -> None:
    script = ScriptedClient(lists=[listing(10), listing(10)], watches=[])
    informers = Informers(script.client, clock=FakeClock())
    everything = informers.of(pod.Pod)
    assert informers.of(pod.Pod) is everything
    selected = informers.of(pod.Pod, protocol.Selection(namespace="one"))
    assert selected is not everything
    async with informers:
        assert informers.of(pod.Pod, protocol.Selection(namespace="one")) is selected
        await informers.wait_synced()
    assert sorted(script.calls)[:2] == ["list pods limit=500"] * 2


async def test_indexes_are_filled_by_the_informer() -> None:
    script = ScriptedClient(lists=[listing(10, version("a", 3))], watches=[[[added("b", 11), deleted("a", 12)]]])
    async with Informers(script.client, clock=FakeClock()) as informers:
        informer = informers.of(pod.Pod)
        informer.cache.add_index("uid", lambda known: [known.metadata.uid])
        await script.finished.wait()
        assert informer.cache.values("uid") == ("uid-of-b",)


async def test_what_goes_wrong_beside_informers_is_raised_as_it_is() -> None:
    async def run() -> None:
        script = ScriptedClient(lists=[listing(10)], watches=[])
        async with Informers(script.client, clock=FakeClock()) as informers:
            informers.of(pod.Pod)
            raise errors.InvalidValueError("mine")

    with pytest.raises(errors.InvalidValueError, match="mine"):
        await run()


@pytest.mark.parametrize(
    "defect",
    [
        pytest.param(RuntimeError("a defect"), id="any"),
        pytest.param(errors.DecodeError("a defect"), id="one-that-looks-like-the-servers"),
    ],
)
@pytest.mark.defective
async def test_a_handler_that_raises_is_called_again_and_holds_up_no_other_object(defect: Exception) -> None:
    lines: list[str] = []
    broken = {"a"}
    clock = ManualClock()

    def fail(new: pod.Pod) -> None:
        if new.metadata.name in broken:
            raise defect
        lines.append(f"added {shown(new)}")

    script = ScriptedClient(lists=[listing(10, version("a", 3), version("b", 4))], watches=[[[modified("c", 11)]]])
    reported = defects.PROCESS.count("informer of pods")
    async with Informers(script.client, clock=clock, rng=random.Random(1)) as informers:
        informer = informers.of(pod.Pod)
        informer.add_handler(Handler(added=fail))
        other = Journal("other", lines)
        informer.add_handler(other.handler)
        await script.finished.wait()
        assert lines == ["other: added a@3", "added b@4", "other: added b@4", "added c@11", "other: added c@11"]
        assert not informers.problems()
        await clock.advance(1)
        await clock.advance(1)
        assert defects.PROCESS.count("informer of pods") == reported + 2, "the second pause is longer"
        broken.clear()
        await clock.advance(1)
        assert lines[5:] == ["added a@3"]


@pytest.mark.defective
@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param([modified("a", 11)], ["added a@11"], id="changed-meanwhile"),
        pytest.param([modified("a", 11), deleted("a", 12)], ["added a@11", "deleted a@12"], id="gone"),
        pytest.param([deleted("a", 11)], [], id="gone-before-it-was-seen"),
    ],
)
async def test_a_handler_learns_of_changes_from_where_it_failed(
    changes: Sequence[Event[pod.Pod]], want: list[str]
) -> None:
    journal = Journal()

    def fail_at_first(new: pod.Pod) -> None:
        if new.metadata.resource_version == "3":
            raise RuntimeError("a defect")
        journal.handler.added(new)

    script = ScriptedClient(lists=[listing(10, version("a", 3))], watches=[[list(changes)]])
    clock = ManualClock()
    async with Informers(script.client, clock=clock, rng=random.Random(1)) as informers:
        handler = structs.replace(journal.handler, added=fail_at_first)
        informers.of(pod.Pod).add_handler(handler)
        await script.finished.wait()
        await clock.advance(60)
        assert journal.lines == want


@pytest.mark.defective
async def test_an_object_without_a_value_of_an_index_is_in_the_cache() -> None:
    def value_of(each: pod.Pod) -> tuple[str, ...]:
        if each.metadata.name == "a":
            raise RuntimeError("a defect")
        return (each.metadata.name,)

    script = ScriptedClient(lists=[listing(10, version("a", 3), version("b", 4))], watches=[])
    async with Informers(script.client, clock=ManualClock(), rng=random.Random(1)) as informers:
        informer = informers.of(pod.Pod)
        informer.cache.add_index("name", value_of)
        await informer.wait_synced()
        assert (len(informer.cache), informer.cache.values("name")) == (2, ("b",))


async def test_a_kind_that_a_cluster_may_do_without_counts_as_empty() -> None:
    absent = refusal.error({"message": "the server could not find it", "reason": "NotFound", "code": 404})
    script, clock = ScriptedClient(lists=[absent, absent, listing(10)], watches=[]), FakeClock()
    async with Informers(script.client, clock=clock, rng=random.Random(1), pauses=STEADY) as informers:
        informer = informers.of(podgroup.PodGroup)
        await informers.wait_synced()
        failure = informer.failure
        assert failure is not None
        (absence,) = informers.absences()
        assert "podgroups.scheduling.k8s.io: the API server does not serve this kind: pods are scheduled one" in absence
        assert informers.problems() == []
        await script.finished.wait()
        assert informer.failure is None
        assert informers.absences() == []


OBSERVATIONS = [
    pytest.param(
        [listing(10, version("a", 3))],
        [[[bookmark(10)], [modified("a", 11), modified("a", 12), modified("a", 13)]]],
        version("a", 12),
        ["added a@3", "updated a@3 to a@12", "updated a@12 to a@13"],
        id="older-reports-are-ignored",
    ),
    pytest.param(
        [listing(10), listing(11)],
        [[[bookmark(10)], GONE], [[added("b", 12)]]],
        version("b", 12),
        ["added b@12"],
        id="a-list-from-before-the-write-removes-nothing",
    ),
    pytest.param(
        [listing(10), listing(13)],
        [[[bookmark(10)], GONE], []],
        version("b", 12),
        ["added b@12", "deleted b@12"],
        id="a-list-from-after-the-write-decides",
    ),
    pytest.param(
        [listing(10, version("a", 3))],
        [[[deleted("a", 12)]]],
        version("a", 11),
        ["added a@3", "deleted a@12"],
        id="nothing-comes-back-that-the-watch-saw-go",
    ),
    pytest.param(
        [listing(10, version("a", 3, uid="first"))],
        [[[bookmark(10)], [Event(Change.DELETED, version("a", 11, uid="first"))]]],
        version("a", 12, uid="second"),
        ["added a@3", "deleted a@3", "added a@12"],
        id="the-end-of-a-predecessor-is-not-the-end",
    ),
]


@pytest.mark.parametrize(("lists", "watches", "written", "want"), OBSERVATIONS)
async def test_observed_writes(
    lists: Sequence[protocol.Listing[Any]], watches: Sequence[Sequence[Batch]], written: pod.Pod, want: Sequence[str]
) -> None:
    script, journal = ScriptedClient(lists=lists, watches=watches), Journal()
    async with Informers(script.client, clock=FakeClock(), rng=random.Random(1), pauses=STEADY) as informers:
        informer = informers.of(pod.Pod)
        informer.add_handler(journal.handler)
        script.after_first_batch = lambda: informers.observe(pod.Pod, written)
        await script.finished.wait()
    assert journal.lines == want


async def test_documents_are_asked_for_before_the_first_list() -> None:
    script = ScriptedClient(lists=[listing(10, version("a", 3))], watches=[])
    async with Informers(script.client, clock=FakeClock()) as informers:
        informer = informers.of(pod.Pod)
        await script.finished.wait()
        with pytest.raises(errors.InvalidValueError, match="informer of pods: has listed without documents"):
            informers.of(pod.Pod, with_documents=True)
        with pytest.raises(errors.InvalidValueError, match="default/a: the informer does not keep documents"):
            informer.cache.entry("a", namespace="default")


async def test_metadata_has_no_documents() -> None:
    kind = target.metadata_of("", "v1", plural="configmaps", kind="ConfigMap", namespaced=True)
    with pytest.raises(errors.InvalidValueError, match="informer of configmaps: reads metadata only"):
        Informers(ScriptedClient(lists=[], watches=[]).client).of(kind, with_documents=True)


async def test_an_observed_view_lacks_the_document() -> None:
    informers = Informers(ScriptedClient(lists=[], watches=[]).client)
    informers.of(pod.Pod, with_documents=True)
    with pytest.raises(errors.InvalidValueError, match="pods default/a: is a partial view"):
        informers.observe(pod.Pod, version("a", 3))


async def test_an_observed_object_of_a_complete_kind_is_its_document() -> None:
    informers = Informers(ScriptedClient(lists=[], watches=[]).client)
    claims = informers.of(resourceclaim.ResourceClaim, with_documents=True)
    draft = claim("c").build()
    metadata = structs.replace(draft.metadata, namespace="default", resource_version="3")
    claims.observe(structs.replace(draft, metadata=metadata))
    entry = claims.cache.entry("c", namespace="default")
    assert entry is not None
    assert entry.document()["kind"] == "ResourceClaim"
    assert entry.document()["metadata"]["resourceVersion"] == "3"


async def test_observing_a_kind_without_informer_does_nothing() -> None:
    informers = Informers(ScriptedClient(lists=[], watches=[]).client)
    informers.observe(pod.Pod, version("a", 3))
    assert not informers.of(pod.Pod).cache
