"""The tree of queues: bars of quota, totals of cohorts, and fair shares."""

import datetime as dt

from drachma.api import meta
from drachma.queueing.kinds import clusterqueue, localqueue, workload
from drachma.values import quantity
from drachma.web import queuetree
from drachma.web.models import Model

_NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def _amount(text: str) -> quantity.Quantity:
    return quantity.Quantity.parse(text)


def _queue(name: str, *, nominal: str, used: str, borrowed: str = "0", share: int | None = None) -> meta.Object:
    quota = clusterqueue.ResourceQuota(
        name="memory", nominal_quota=_amount(nominal), borrowing_limit=_amount("20Gi") if borrowed != "0" else None
    )
    group = clusterqueue.ResourceGroup(
        covered_resources=("memory",), flavors=(clusterqueue.FlavorQuotas(name="big", resources=(quota,)),)
    )
    usage = clusterqueue.ResourceUsage(name="memory", total=_amount(used), borrowed=_amount(borrowed))
    return clusterqueue.ClusterQueue(
        metadata=meta.ObjectMeta(name=name),
        spec=clusterqueue.ClusterQueueSpec(cohort_name="team", resource_groups=(group,)),
        status=clusterqueue.ClusterQueueStatus(
            flavors_reservation=(clusterqueue.FlavorUsage(name="big", resources=(usage,)),),
            fair_sharing=clusterqueue.FairSharingStatus(weighted_share=share) if share is not None else None,
        ),
    )


def test_bars_show_own_borrowed_and_lent_quota() -> None:
    model = Model()
    model.put(_queue("a", nominal="40Gi", used="50Gi", borrowed="10Gi", share=125))
    model.put(_queue("b", nominal="40Gi", used="0"))
    model.put(
        clusterqueue.Cohort(metadata=meta.ObjectMeta(name="team"), spec=clusterqueue.CohortSpec(parent_name="all"))
    )
    (root,) = queuetree.build(model)
    (team,) = root.children
    borrower, lender = team.queues
    assert borrower.fair_share == "12.5 %"
    assert lender.fair_share == ""
    bar = borrower.quotas[0].bar
    assert [round(part) for part in bar] == [67, 17, 0, 67]
    assert [round(part) for part in lender.quotas[0].bar] == [0, 0, 25, 100]
    for cohort in (team, root):
        (total,) = cohort.totals
        assert (str(total.used), str(total.nominal), str(total.borrowed)) == ("50Gi", "80Gi", "0")


def test_a_queue_without_weight_that_borrows_is_above_all_others() -> None:
    model = Model()
    model.put(_queue("a", nominal="0", used="1Gi", borrowed="1Gi", share=2**63 - 1))
    assert queuetree.build(model)[0].queues[0].fair_share == "above all others"


def test_waiting_workloads_are_in_the_order_of_admission() -> None:
    model = Model()
    local = localqueue.LocalQueue(
        metadata=meta.ObjectMeta(name="local", namespace="team"), spec=localqueue.LocalQueueSpec(cluster_queue="a")
    )
    model.put(local)
    requeued = meta.Condition(
        type="Evicted", status="True", reason="AdmissionCheck", last_transition_time=_NOON + dt.timedelta(hours=1)
    )
    for name, uid, status in (
        ("first-by-name", "uid-2", workload.WorkloadStatus()),
        ("second-by-name", "uid-1", workload.WorkloadStatus()),
        ("a-requeued-one", "uid-0", workload.WorkloadStatus(conditions=(requeued,))),
    ):
        metadata = meta.ObjectMeta(name=name, namespace="team", uid=uid, creation_timestamp=_NOON)
        model.put(workload.Workload(metadata=metadata, spec=workload.WorkloadSpec(queue_name="local"), status=status))
    listed = queuetree.pending(model)["a"]
    assert [each.key.name for each in listed] == ["second-by-name", "first-by-name", "a-requeued-one"]
    assert [each.position for each in listed] == [1, 2, 3]
