"""The queue: its order, parked pods, and the changes that wake them."""

from typing import Any

import pytest
from msgspec import structs

from drachma.api import pod
from drachma.runtime import cache
from drachma.scheduler import queue
from drachma.scheduler.framework import hints, verdict
from drachma.scheduler.framework.hints import Action, Change, Hint, Resource
from drachma.scheduler.queue import Where
from drachma.testing import node
from drachma.testing import pod as a_pod


class World:
    """A queue with two plugins: one waits for nodes with the pod's name, one for claims."""

    def __init__(self, *, helped: set[str] | None = None) -> None:
        """``helped`` are the uids of pods for which remedies are being applied."""
        self.helped = helped or set()
        self.now = 100.0
        self.gated: set[str] = set()
        self.asked: list[str] = []
        self.counted: list[tuple[str, str]] = []
        self.queue = queue.Queue(
            {
                "Nodes": (Hint(Resource.NODE, Action.ADD, self._node_helps),),
                "Claims": (
                    Hint(Resource.RESOURCE_CLAIM, Action.UPDATE, hints.always),
                    Hint(Resource.TARGET_POD, Action.UPDATE_POD_GENERATED_CLAIM, hints.always),
                ),
                "Gates": (Hint(Resource.TARGET_POD, Action.UPDATE_POD_GATES, hints.always),),
            },
            self._pre_enqueue,
            monotonic=lambda: self.now,
            count=lambda queue, event: self.counted.append((queue, event)),
            is_being_helped=lambda uid: uid in self.helped,
        )

    def _node_helps(self, waiting: pod.Pod, _old: Any, new: Any) -> bool:
        self.asked.append(waiting.metadata.name)
        return bool(new.metadata.name == waiting.metadata.name)

    def _pre_enqueue(self, waiting: pod.Pod) -> verdict.Rejection | None:
        return verdict.Rejection("Gates", ("closed",)) if waiting.metadata.name in self.gated else None

    def add(self, name: str, priority: int = 0, *, claim: str | None = None) -> pod.Pod:
        made = a_pod(name).uid(f"uid-{name}").spec(priority=priority)
        if claim is not None:
            made = made.claim("x", claim=claim)
        built = made.build()
        self.queue.add(built)
        return built

    def pop(self) -> str | None:
        entry = self.queue.pop()
        return None if entry is None else entry.info.pod.metadata.name

    def fail(self, *plugins: str) -> queue.QueuedPod:
        """Pops the next pod and puts it back as rejected by these plugins."""
        entry = self.queue.pop()
        assert entry is not None
        self.queue.put_back(entry, rejectors=frozenset(plugins), current=entry.info.pod)
        return entry


def node_added(name: str) -> Change:
    return Change(Resource.NODE, Action.ADD, None, node(name).build())


def test_important_pods_first_then_older_ones() -> None:
    world = World()
    for name, priority in (("a", 0), ("b", 5), ("c", 5), ("d", -1)):
        world.now += 1
        world.add(name, priority)
    assert [world.pop() for _ in range(5)] == ["b", "c", "a", "d", None]


def test_a_rejected_pod_is_woken_by_what_helps_it_and_nothing_else() -> None:
    world = World()
    world.add("a")
    world.fail("Nodes")
    assert (world.pop(), world.queue.size(Where.PARKED)) == (None, 1)
    world.queue.wake(node_added("b"))
    world.queue.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE))
    assert world.pop() is None
    world.queue.wake(node_added("a"))
    assert world.pop() == "a"


def test_only_plugins_that_rejected_a_pod_are_asked() -> None:
    world = World()
    world.add("a")
    world.fail("Claims")
    world.queue.wake(node_added("a"))
    assert world.asked == []


def test_changes_of_a_claim_concern_its_pods() -> None:
    world = World()
    world.add("a", claim="mine")
    world.add("b", claim="other")
    world.fail("Claims")
    world.fail("Claims")
    world.queue.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE), claim=cache.Key("default", "mine"))
    assert [world.pop(), world.pop()] == ["a", None]
    world.queue.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE))
    assert world.pop() == "b"


def test_a_parked_pod_is_found_by_the_claims_that_it_has_now() -> None:
    world = World()
    old = world.add("a", claim="before")
    world.fail("Claims")
    new = a_pod("a").uid("uid-a").claim("x", claim="after").build()
    world.queue.update(old, new)
    world.queue.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE), claim=cache.Key("default", "before"))
    assert world.pop() is None
    world.queue.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE), claim=cache.Key("default", "after"))
    assert world.pop() == "a"


def test_one_pod_can_be_left_out() -> None:
    world = World()
    world.add("a")
    world.fail("Claims")
    world.queue.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE), but="uid-a")
    assert world.pop() is None


def test_backing_off_ends_early_when_there_is_nothing_else_to_do() -> None:
    world = World()
    world.add("a")
    world.fail("Claims")
    world.queue.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE))
    assert world.queue.size(Where.BACKOFF) == 1
    world.add("b")
    assert [world.pop(), world.pop(), world.pop()] == ["b", "a", None]


def test_errors_are_waited_out_with_growing_pauses() -> None:
    world = World()
    world.add("a")
    pauses = []
    for _ in range(6):
        world.fail()
        began = world.now
        assert world.pop() is None
        ready = world.queue.next_time()
        assert ready is not None
        pauses.append(ready - began)
        world.now = ready - 0.25
        assert world.pop() is None
        world.now = ready
    # Each ends with a full second.
    assert pauses == [2, 3, 5, 9, 11, 11]


@pytest.mark.parametrize(("failures", "want"), [(0, 0.0), (1, 1.0), (3, 4.0), (5, 10.0), (100_000, 10.0)])
def test_pauses_grow_to_the_longest(failures: int, want: float) -> None:
    assert queue.Pauses().after(failures) == want


def test_of_pods_that_failed_at_about_the_same_time_the_most_important_is_next() -> None:
    world = World()
    world.add("usual")
    world.fail("Claims")
    world.now += 0.25
    world.add("important", priority=5)
    world.fail("Claims")
    world.now += 0.25
    world.queue.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE))
    assert world.queue.size(Where.BACKOFF) == 2
    assert [world.pop(), world.pop()] == ["important", "usual"]


def test_parked_pods_are_tried_again_after_five_minutes() -> None:
    world = World()
    world.add("a")
    world.fail("Nodes")
    assert world.queue.next_time() == world.now + 300
    world.now += 299
    assert world.pop() is None
    world.now += 1
    entry = world.queue.pop()
    assert entry is not None
    assert entry.was_flushed


def test_gated_pods_never_come_up() -> None:
    world = World()
    world.gated.add("a")
    old = world.add("a")
    assert (world.pop(), world.queue.size(Where.GATED)) == (None, 1)
    old = structs.replace(old, spec=structs.replace(old.spec, scheduling_gates=(pod.PodSchedulingGate(name="g"),)))
    world.queue.update(old, old)
    new = structs.replace(old, spec=structs.replace(old.spec, scheduling_gates=()))
    world.queue.update(old, new)
    assert world.pop() is None, "its gates are open, and something else keeps it back"
    world.gated.clear()
    world.queue.update(old, new)
    assert world.pop() == "a"


def test_an_update_of_the_pod_can_help_it() -> None:
    world = World()
    old = world.add("a")
    world.fail("Claims")
    status = pod.PodResourceClaimStatus(name="x", resource_claim_name="c")
    new = structs.replace(old, status=structs.replace(old.status, resource_claim_statuses=(status,)))
    world.queue.update(old, new)
    entry = world.queue.pop()
    assert entry is not None
    assert entry.info.pod is new


def test_a_pod_made_anew_under_the_same_name_is_another_one() -> None:
    world = World()
    old = world.add("a")
    world.fail("Nodes")
    new = structs.replace(old, metadata=structs.replace(old.metadata, uid="another"))
    world.queue.delete(new)
    assert len(world.queue) == 1
    world.queue.update(old, new)
    entry = world.queue.pop()
    assert entry is not None
    assert (entry.info.uid, entry.attempts) == ("another", 1)


@pytest.mark.parametrize("where", [Where.ACTIVE, Where.BACKOFF, Where.PARKED])
def test_deleted_pods_are_gone_from_everywhere(where: Where) -> None:
    world = World()
    made = world.add("a")
    if where is not Where.ACTIVE:
        world.fail(*(() if where is Where.BACKOFF else ("Nodes",)))
    assert world.queue.size(where) == 1
    world.queue.delete(made)
    assert (len(world.queue), world.queue.size(where), world.queue.next_time()) == (
        0,
        0,
        None,
    ) or where is Where.BACKOFF
    world.now += 1000
    assert world.pop() is None
    assert world.queue.rejected_by() == {}


def test_activated_pods_do_not_wait() -> None:
    world = World()
    world.add("a")
    world.fail("Nodes")
    world.queue.activate(cache.Key("default", "a"))
    assert world.pop() == "a"


def test_a_pod_that_came_in_again_is_not_put_back() -> None:
    world = World()
    world.add("a")
    entry = world.queue.pop()
    assert entry is not None
    world.add("a", priority=7)
    world.queue.put_back(entry, rejectors=frozenset(("Nodes",)), current=entry.info.pod)
    found = world.queue.pop()
    assert found is not None
    assert found.info.priority == 7


def test_who_always_comes_too_late_pauses() -> None:
    world = World()
    world.add("p")
    for _ in range(3):
        entry = world.queue.pop()
        assert entry is not None
        world.queue.retry(entry, current=entry.info.pod)
        assert world.queue.size(Where.ACTIVE) == 1, "at once"
    entry = world.queue.pop()
    assert entry is not None
    world.queue.retry(entry, current=entry.info.pod)
    assert world.pop() is None
    world.now += 3
    assert world.pop() == "p"


def test_what_is_counted() -> None:
    world = World()
    world.add("a")
    world.fail("Nodes")
    world.queue.wake(node_added("a"))
    assert world.counted == [("active", "PodAdd"), ("unschedulable", "ScheduleAttemptFailure"), ("backoff", "NodeAdd")]


def test_pods_of_a_gang_are_taken_from_wherever_they_wait() -> None:
    world = World()
    world.gated.add("gated")
    for name in ("parked", "active", "gated"):
        world.add(name)
        if name == "parked":
            world.fail("Nodes")
    taken = [
        world.queue.take(cache.Key("default", name), uid)
        for name, uid in (
            ("parked", "uid-parked"),
            ("active", "uid-of-one-before"),
            ("active", "uid-active"),
            ("gated", "uid-gated"),
            ("gone", "uid-gone"),
        )
    ]
    assert [None if each is None else (each.info.pod.metadata.name, each.attempts) for each in taken] == [
        ("parked", 2),
        None,
        ("active", 1),
        None,
        None,
    ]
    assert world.pop() is None
    assert len(world.queue) == 1


def test_a_pod_that_a_remedy_helps_is_tried_after_the_remedy() -> None:
    world = World(helped={"uid-n1"})
    world.add("n1")
    world.fail("Nodes")
    world.queue.wake(node_added("n1"))
    assert world.pop() is None
    world.helped.clear()
    world.queue.remedied(cache.Key("default", "n1"))
    assert world.pop() == "n1"


def test_a_remedy_alone_wakes_no_pod() -> None:
    world = World(helped={"uid-n1"})
    world.add("n1")
    world.fail("Nodes")
    world.queue.wake(node_added("n2"))
    world.helped.clear()
    world.queue.remedied(cache.Key("default", "n1"))
    assert world.pop() is None
    world.queue.wake(node_added("n1"))
    assert world.pop() == "n1"
