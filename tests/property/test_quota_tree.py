"""The quota tree against plain definitions, and admission against its promises."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drachma.api import meta
from drachma.queueing import amounts
from drachma.queueing.admission import quotatree
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.admission.entry import Status
from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.workloads import admissibility, transitions, workloadstate
from drachma.queueing.workloads.requests import FlavorResource
from drachma.queueing.workloads.settings import Settings

_KEY = FlavorResource("f", "memory")
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_LIMIT = st.none() | st.integers(0, 8)
_QUOTA = st.tuples(st.integers(0, 10), _LIMIT, _LIMIT)
# How long drawing a tree takes says how busy the machine is, nothing about quota.
_unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

Shape = tuple[list[dict[str, Any]], list[dict[str, Any]]]


@st.composite
def _trees(draw: st.DrawFn) -> Shape:
    """Cohorts, each below an earlier one or a root, and queues below any of them or by themselves."""
    cohorts = []
    for number in range(draw(st.integers(0, 4))):
        parent = draw(st.none() | st.integers(0, number - 1)) if number else None
        # Roots have no limits: there is nobody to borrow from or lend to.
        nominal, borrowing, lending = draw(_QUOTA)
        limits = (nominal, borrowing, lending) if parent is not None else (nominal, None, None)
        spec: dict[str, Any] = {
            "resourceGroups": _groups(limits),
            "parentName": "" if parent is None else f"cohort-{parent}",
        }
        cohorts.append({"metadata": {"name": f"cohort-{number}"}, "spec": spec})
    queues = []
    for number in range(draw(st.integers(1, 4))):
        cohort = draw(st.none() | st.integers(0, len(cohorts) - 1)) if cohorts else None
        limits = draw(_QUOTA) if cohort is not None else (draw(st.integers(0, 10)), None, None)
        spec = {
            "resourceGroups": _groups(limits),
            "cohortName": "" if cohort is None else f"cohort-{cohort}",
            "namespaceSelector": {},
            "preemption": {
                "reclaimWithinCohort": draw(st.sampled_from(["Never", "Any", "LowerPriority"])),
                "withinClusterQueue": draw(st.sampled_from(["Never", "LowerPriority"])),
            },
        }
        queues.append({"metadata": {"name": f"queue-{number}"}, "spec": spec})
    return queues, cohorts


def _groups(limits: tuple[int, int | None, int | None]) -> list[dict[str, Any]]:
    nominal, borrowing, lending = limits
    quota: dict[str, Any] = {"name": "memory", "nominalQuota": str(nominal)}
    if borrowing is not None:
        quota["borrowingLimit"] = str(borrowing)
    if lending is not None:
        quota["lendingLimit"] = str(lending)
    return [{"coveredResources": ["memory"], "flavors": [{"name": "f", "resources": [quota]}]}]


def _tree(shape: Shape) -> quotatree.QuotaTree:
    queues, cohorts = shape
    return quotatree.QuotaTree(
        [decoding.decode(each, clusterqueue.ClusterQueue) for each in queues],
        [decoding.decode(each, clusterqueue.Cohort) for each in cohorts],
    )


def _holds(node: quotatree.Node) -> bool:
    """The rules, said plainly: nobody uses more than they have and may borrow, and no tree more than there is."""
    for each in (node, *node.ancestors):
        used, has = each.usage.get(_KEY, 0), each.subtree.get(_KEY, 0)
        limit = each.quota(_KEY).borrowing_limit
        if each.parent is None and used > has:
            return False
        if each.parent is not None and limit is not None and used > has + limit:
            return False
    return True


@_unhurried
@given(shape=_trees(), steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), max_size=12))
def test_what_is_available_is_exactly_what_the_rules_allow(shape: Shape, steps: list[tuple[int, int]]) -> None:
    tree = _tree(shape)
    nodes = list(tree.queues.values())
    for number, amount in steps:
        node = nodes[number % len(nodes)]
        available = max(0, node.available(_KEY))
        for more in {1, amount, available, available + 1} - {0}:
            node.add({_KEY: more})
            assert _holds(node) == (more <= available), (node, more)
            node.remove({_KEY: more})
        node.add({_KEY: min(amount, available)})
        assert all(_holds(each) for each in nodes)


@_unhurried
@given(shape=_trees(), steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), max_size=12), undo=st.data())
def test_usage_that_comes_and_goes_is_what_is_left_of_it(
    shape: Shape, steps: list[tuple[int, int]], undo: st.DataObject
) -> None:
    tree = _tree(shape)
    nodes = list(tree.queues.values())
    held = [(nodes[number % len(nodes)], amount) for number, amount in steps]
    for node, amount in held:
        node.add({_KEY: amount})
    gone = undo.draw(st.permutations(held))[: undo.draw(st.integers(0, len(held)))]
    for node, amount in gone:
        node.remove({_KEY: amount})
        held.remove((node, amount))

    fresh = _tree(shape)
    for node, amount in held:
        fresh.queues[node.name].usage[_KEY] = fresh.queues[node.name].usage.get(_KEY, 0) + amount
    for node in (*fresh.queues.values(), *fresh.cohorts.values()):
        if node.parent is None:
            node.settle()

    for name, node in {**tree.queues, **tree.cohorts}.items():
        expected = {**fresh.queues, **fresh.cohorts}[name]
        assert node.usage.get(_KEY, 0) == expected.usage.get(_KEY, 0)


_WORKLOADS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.integers(0, 2)), max_size=8)


def _admitter(
    shape: Shape,
    asked: list[tuple[int, int, int]],
    *,
    is_fair: bool,
    is_reversed: bool,
) -> Admitter:
    queues, cohorts = shape
    admitter = Admitter(settings=Settings(fair_sharing=is_fair))
    admitter.set_places({"ns": admissibility.Place()})
    step = -1 if is_reversed else 1
    local = [
        {
            "metadata": {"name": each["metadata"]["name"], "namespace": "ns"},
            "spec": {"clusterQueue": each["metadata"]["name"]},
        }
        for each in queues
    ]
    admitter.set_queues(
        [decoding.decode(each, clusterqueue.ClusterQueue) for each in queues[::step]],
        cohorts=[decoding.decode(each, clusterqueue.Cohort) for each in cohorts[::step]],
        local_queues=[decoding.decode(each, localqueue.LocalQueue) for each in local[::step]],
        flavors=[resourceflavor.ResourceFlavor(metadata=meta.ObjectMeta(name="f"))],
    )
    for number, (queue, amount, priority) in list(enumerate(asked))[::step]:
        admitter.enqueue(_workload(number, f"queue-{queue % len(queues)}", amount=amount, priority=priority), _NOW)
    return admitter


def _workload(number: int, queue: str, *, amount: int, priority: int) -> workload.Workload:
    container = {"name": "c", "resources": {"requests": {"memory": str(amount)}}}
    return decoding.decode(
        {
            "metadata": {
                "name": f"w{number}",
                "namespace": "ns",
                "uid": f"u{number}",
                "creationTimestamp": f"2026-01-01T00:00:{number:02d}Z",
            },
            "spec": {
                "queueName": queue,
                "priority": priority,
                "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}],
            },
        },
        workload.Workload,
    )


@settings(_unhurried, max_examples=60)
@given(shape=_trees(), asked=_WORKLOADS, is_fair=st.booleans())
def test_admission_keeps_to_the_quota_and_does_not_depend_on_the_order_of_objects(
    shape: Shape, asked: list[tuple[int, int, int]], is_fair: bool
) -> None:
    outcomes = []
    for is_reversed in (False, True):
        admitter = _admitter(shape, asked, is_fair=is_fair, is_reversed=is_reversed)
        for _ in range(len(asked) + 1):
            if admitter.run_cycle(_NOW) is None:
                break
            assert all(_holds(node) for node in admitter.snapshot.tree.queues.values())
        outcomes.append(
            {
                name: (sorted(queue.workloads), admitter.queues[name].active, admitter.queues[name].parked)
                for name, queue in admitter.snapshot.queues.items()
            }
        )
    assert outcomes[0] == outcomes[1]


class _Life:
    """Workloads from their arrival to their end, in as many processes as there are: all that lasts is here."""

    def __init__(self, shape: Shape, asked: list[tuple[int, int, int]], *, is_fair: bool) -> None:
        self._shape = shape
        self._is_fair = is_fair
        tree, names = _tree(shape), [each["metadata"]["name"] for each in shape[0]]
        self.stored: dict[str, workload.Workload] = {}
        for number, (queue, amount, priority) in enumerate(asked):
            name = names[queue % len(names)]
            most = tree.queues[name].available(_KEY)
            if most > 0:
                made = _workload(number, name, amount=1 + amount % most, priority=priority)
                self.stored[workloadstate.key(made)] = made
        self.over: list[str] = []
        self.admitter = self.restarted()

    @property
    def holders(self) -> dict[str, workload.Workload]:
        """Those who have quota by what is stored."""
        return {key: each for key, each in self.stored.items() if workloadstate.has_reservation(each)}

    def restarted(self) -> Admitter:
        """Admission in a new process, which knows what is stored."""
        admitter = _admitter(self._shape, [], is_fair=self._is_fair, is_reversed=False)
        for key, each in self.stored.items():
            if key in self.holders:
                admitter.hold(each)
            else:
                admitter.enqueue(each, _NOW)
        return admitter

    def advance(self, *, ending: int) -> None:
        """A cycle, written down; then every so many who run are over, and those who were preempted wait again."""
        report = self.admitter.run_cycle(_NOW)
        before = self.holders
        entries = {each.info.key: each for each in report.entries} if report is not None else {}
        for key, after in (report.workloads if report is not None else {}).items():
            if key in entries and entries[key].status is Status.ADMITTED:
                assert key not in before, "nobody is admitted twice"
                self.stored[key] = after
            elif key not in entries:
                self.admitter.release(key)
                waiting = transitions.unreserve(
                    transitions.requeued(after, "True", reason="Preempted", message=""),
                    reason="Pending",
                    message="",
                    now=_NOW,
                    gates=DEFAULT,
                )
                self.stored[key] = waiting
                self.admitter.enqueue(waiting, _NOW)
        is_stuck = self.holders.keys() == before.keys()
        for place, key in enumerate(sorted(self.holders)):
            if is_stuck or not place % ending:
                self.over.append(key)
                self.admitter.release(key)
                del self.stored[key]
        for name in self.admitter.queues:
            self.admitter.retry([name], _NOW)

    def check(self) -> None:
        """What is counted is what those have who hold quota, and it is within the rules."""
        nodes = self.admitter.snapshot.tree.queues
        assert self.admitter.snapshot.holders.keys() == self.holders.keys()
        used = dict.fromkeys(nodes, 0)
        for each in self.holders.values():
            admission = each.status.admission
            assert admission is not None
            used[admission.cluster_queue] += amounts.request_amounts(admission.pod_set_assignments[0].resource_usage)[
                "memory"
            ]
        assert {name: node.usage.get(_KEY, 0) for name, node in nodes.items()} == used
        assert all(_holds(node) for node in nodes.values())


@settings(_unhurried, max_examples=40)
@given(
    shape=_trees(),
    asked=_WORKLOADS,
    is_fair=st.booleans(),
    ending=st.integers(1, 4),
    restarts=st.sets(st.integers(0, 8)),
)
def test_everybody_has_their_turn_once_however_often_admission_is_restarted(
    shape: Shape, asked: list[tuple[int, int, int]], is_fair: bool, ending: int, restarts: set[int]
) -> None:
    life = _Life(shape, asked, is_fair=is_fair)
    everybody = sorted(life.stored)
    for number in range(4 * len(everybody) + 4):
        if not life.stored:
            break
        if number in restarts:
            life.admitter = life.restarted()
        life.advance(ending=ending)
        life.check()
    assert sorted(life.over) == everybody


_QUEUE_CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["put", "remove", "hold"]),
        st.integers(0, 5),
        st.none() | st.integers(0, 5),
        _QUOTA,
        st.booleans(),
    ),
    max_size=16,
)


def _state(admitter: Admitter) -> dict[str, Any]:
    """Everything that a decision reads of a snapshot."""
    snapshot = admitter.snapshot
    nodes = {**snapshot.tree.cohorts, **{state.name: state.node for state in snapshot.states}}
    return {
        "nodes": {
            name: (
                {key: amount for key, amount in node.subtree.items() if amount},
                node.local,
                {key: amount for key, amount in node.usage.items() if amount},
                node.height,
                node.weight,
                node.parent.name if node.parent is not None else None,
                sorted(each.name for each in node.queues),
                sorted(each.name for each in node.retired),
                sorted(each.name for each in node.cohorts),
            )
            for name, node in nodes.items()
        },
        "active": sorted(snapshot.queues),
        "inactive": snapshot.inactive,
        "circular": snapshot.tree.circular,
        "holders": {key: info.cluster_queue for key, info in snapshot.holders.items()},
        "workloads": {state.name: sorted(state.workloads) for state in snapshot.states},
        "pending": sorted(admitter.queues),
    }


@_unhurried
@given(shape=_trees(), changes=_QUEUE_CHANGES, has_cycle=st.booleans())
def test_queues_that_come_and_go_one_by_one_leave_the_tree_of_those_present(
    shape: Shape, changes: list[tuple[str, int, int | None, tuple[int, int | None, int | None], bool]], has_cycle: bool
) -> None:
    _, documents = shape
    # Cohort 4 is below itself; cohort 5 exists only by name.
    documents = [each for each in documents if each["metadata"]["name"] != "cohort-4"]
    if has_cycle:
        documents.append({"metadata": {"name": "cohort-4"}, "spec": {"parentName": "cohort-4"}})
    cohorts = [decoding.decode(each, clusterqueue.Cohort) for each in documents]
    flavors = [resourceflavor.ResourceFlavor(metadata=meta.ObjectMeta(name="f"))]
    gradual = Admitter()
    gradual.set_queues([], cohorts=cohorts, flavors=flavors)
    queues: dict[str, clusterqueue.ClusterQueue] = {}
    holders: dict[str, workload.Workload] = {}

    for number, (act, queue, cohort, limits, is_stopped) in enumerate(changes):
        name = f"queue-{queue}"
        if act == "put":
            spec: dict[str, Any] = {"resourceGroups": _groups(limits), "namespaceSelector": {}}
            spec |= {"stopPolicy": "Hold"} if is_stopped else {}
            spec |= {"cohortName": f"cohort-{cohort}"} if cohort is not None else {}
            queues[name] = decoding.decode({"metadata": {"name": name}, "spec": spec}, clusterqueue.ClusterQueue)
            present = [each for each in holders.values() if _cluster_queue(each) == name]
            gradual.put_queue(queues[name], _NOW, is_active=not is_stopped, holders=present)
        elif act == "remove":
            queues.pop(name, None)
            gradual.remove_queue(name, _NOW)
        else:
            holder = _holder(number, name, amount=limits[0] + 1)
            holders[workloadstate.key(holder)] = holder
            gradual.hold(holder)

        fresh = Admitter()
        fresh.set_queues(queues.values(), cohorts=cohorts, flavors=flavors, holders=holders.values())
        assert _state(gradual) == _state(fresh)


def _cluster_queue(holder: workload.Workload) -> str:
    assert holder.status.admission is not None
    return holder.status.admission.cluster_queue


def _holder(number: int, queue: str, *, amount: int) -> workload.Workload:
    admission = {
        "clusterQueue": queue,
        "podSetAssignments": [
            {"name": "main", "count": 1, "flavors": {"memory": "f"}, "resourceUsage": {"memory": str(amount)}}
        ],
    }
    return decoding.decode(
        {
            "metadata": {"name": f"h{number}", "namespace": "ns", "uid": f"h{number}"},
            "spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}]},
            "status": {"admission": admission},
        },
        workload.Workload,
    )
