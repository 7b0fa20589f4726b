"""The admitter between cycles: what holders use counts where it has to, and a cycle leaves nothing behind."""

from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.kinds import clusterqueue
from drachma.queueing.workloads import transitions
from drachma.queueing.workloads.requests import FlavorResource
from drachma.queueing.workloads.settings import Settings
from tests.unit.queueing.admission.admissioncases import FLAVOR, NOW, a_queue, a_workload, an_admitter, set_queues

CPU = FlavorResource(FLAVOR, "cpu")


def test_what_a_stopped_queue_uses_counts_in_its_cohort_from_when_it_is_known() -> None:
    admitter = an_admitter(a_queue("open", 2), a_queue("stopped", 4, stopPolicy="Hold"))
    admitter.hold(a_workload("early", "stopped", 3, holds=True))
    admitter.enqueue(a_workload("late", "open", 4), NOW)

    report = admitter.run_cycle(NOW)

    assert report is not None
    assert report.workloads["ns/late"].status.admission is None
    assert "1 more needed" in report.entries[0].message


def test_who_ends_in_a_stopped_queue_gives_quota_back_to_the_cohort() -> None:
    queues = a_queue("open", 2), a_queue("stopped", 4, stopPolicy="Hold")
    admitter = an_admitter()
    set_queues(admitter, queues, holders=[a_workload("early", "stopped", 3, holds=True)])

    admitter.release("ns/early")
    admitter.enqueue(a_workload("late", "open", 4), NOW)
    report = admitter.run_cycle(NOW)

    assert report is not None
    assert report.workloads["ns/late"].status.admission is not None


def test_who_ends_in_a_stopped_queue_gives_others_of_the_cohort_another_chance() -> None:
    admitter = an_admitter(a_queue("open", 2), a_queue("stopped", 4, stopPolicy="Hold"))
    admitter.hold(a_workload("early", "stopped", 3, holds=True))
    admitter.enqueue(a_workload("late", "open", 4), NOW)
    admitter.run_cycle(NOW)
    assert admitter.queues["open"].parked == ("ns/late",)

    admitter.release("ns/early")

    assert admitter.retry(["stopped"], NOW) == 1


def test_a_workload_that_is_blocked_by_its_gates_again_is_told_so_and_not_written() -> None:
    gates = DEFAULT.switched({"MultiKueueOrchestratedPreemption": True})
    queue = a_queue("queue", 4, preemption={"withinClusterQueue": "LowerPriority"})
    admitter = an_admitter(queue, settings=Settings(gates=gates))
    admitter.hold(a_workload("early", "queue", 4, holds=True))
    admitter.enqueue(a_workload("late", "queue", 4, priority=10, preemptionGates=[{"name": "gate"}]), NOW)

    first = admitter.run_cycle(NOW)
    admitter.retry(["queue"], NOW)
    second = admitter.run_cycle(NOW)

    assert first is not None
    assert second is not None
    assert {each.type for each in first.workloads["ns/late"].status.conditions} >= {"BlockedOnPreemptionGates"}
    assert not second.workloads
    assert [each.reason for each in (*first.events, *second.events)] == ["AdmissionGated", "AdmissionGated"]


def test_a_blocked_workload_keeps_what_is_said_of_its_quota() -> None:
    gates = DEFAULT.switched({"MultiKueueOrchestratedPreemption": True})
    queue = a_queue("queue", 4, preemption={"withinClusterQueue": "LowerPriority"})
    admitter = an_admitter(queue, settings=Settings(gates=gates))
    admitter.hold(a_workload("early", "queue", 4, holds=True))
    gated = a_workload("late", "queue", 4, priority=10, preemptionGates=[{"name": "gate"}])
    blocked = transitions.condition(
        gated,
        "BlockedOnPreemptionGates",
        "True",
        reason="PreemptionGated",
        message="Workload requires preemption, but it's gated",
        now=NOW,
    )
    admitter.enqueue(transitions.unreserve(blocked, reason="WaitingForQuota", message="m", now=NOW), NOW)

    report = admitter.run_cycle(NOW)

    assert report is not None
    assert not report.workloads


def test_a_cycle_leaves_no_usage_behind_where_a_queue_is_beyond_its_limit() -> None:
    # It has used more than its limit allows since the limit came down, and nobody can be preempted for it: what the
    # cycle reserves for it is less than nothing.
    borrows = clusterqueue.LOWER_PRIORITY
    queue = a_queue(
        "beyond",
        4,
        quota={"borrowingLimit": "2"},
        preemption={"borrowWithinCohort": {"policy": borrows}, "reclaimWithinCohort": borrows},
    )
    admitter = an_admitter(queue, a_queue("other", 8))
    admitter.hold(a_workload("early", "beyond", 7, holds=True))
    admitter.enqueue(a_workload("late", "beyond", 5), NOW)
    team = admitter.snapshot.tree.cohorts["team"]
    before = dict(team.usage)

    admitter.run_cycle(NOW)

    assert team.usage == before == {CPU: 7000}
    assert admitter.snapshot.queues["beyond"].node.usage == {CPU: 7000}


def test_taking_more_away_than_is_in_use_and_giving_it_back_changes_nothing() -> None:
    tree = an_admitter(a_queue("queue", 4)).snapshot.tree
    queue, team = tree.queues["queue"], tree.cohorts["team"]
    queue.add({CPU: 2000})

    queue.remove({CPU: 5000})
    queue.add({CPU: 5000})

    assert (queue.usage[CPU], team.usage[CPU]) == (2000, 2000)


def test_a_queue_that_joins_a_cohort_lends_to_parked_workloads_of_the_cohort() -> None:
    admitter = an_admitter(a_queue("small", 2))
    admitter.enqueue(a_workload("large", "small", 5), NOW)
    admitter.run_cycle(NOW)
    assert admitter.queues["small"].parked == ("ns/large",)

    admitter.put_queue(a_queue("lender", 4), NOW, is_active=True)
    report = admitter.run_cycle(NOW)

    assert report is not None
    assert report.workloads["ns/large"].status.admission is not None


def test_a_queue_that_changes_keeps_its_holders_and_its_pending_workloads() -> None:
    admitter = an_admitter(a_queue("queue", 2))
    admitter.hold(a_workload("early", "queue", 2, holds=True))
    admitter.enqueue(a_workload("late", "queue", 2), NOW)
    admitter.run_cycle(NOW)
    generation = admitter.snapshot.queues["queue"].generation

    admitter.put_queue(a_queue("queue", 4), NOW, is_active=True)

    assert admitter.snapshot.queues["queue"].generation > generation
    assert admitter.snapshot.queues["queue"].node.usage == {CPU: 2000}
    report = admitter.run_cycle(NOW)
    assert report is not None
    assert report.workloads["ns/late"].status.admission is not None


def test_a_borrower_that_is_removed_gives_quota_back_to_parked_workloads_of_the_cohort() -> None:
    admitter = an_admitter(a_queue("lender", 4), a_queue("borrower", 0))
    admitter.hold(a_workload("early", "borrower", 3, holds=True))
    admitter.enqueue(a_workload("late", "lender", 4), NOW)
    admitter.run_cycle(NOW)
    assert admitter.queues["lender"].parked == ("ns/late",)

    admitter.remove_queue("borrower", NOW)
    report = admitter.run_cycle(NOW)

    assert report is not None
    assert report.workloads["ns/late"].status.admission is not None
    assert "ns/early" not in admitter.snapshot.holders


def test_a_queue_of_another_cohort_leaves_parked_workloads_and_their_searches_alone() -> None:
    admitter = an_admitter(a_queue("queue", 2))
    admitter.enqueue(a_workload("large", "queue", 5), NOW)
    admitter.run_cycle(NOW)
    generation = admitter.snapshot.queues["queue"].generation

    admitter.put_queue(a_queue("elsewhere", 9, cohortName="other"), NOW, is_active=True)

    assert admitter.queues["queue"].parked == ("ns/large",)
    assert admitter.snapshot.queues["queue"].generation == generation
