"""Replicas by usage: upstream's calculator on named cases."""

import datetime as dt

import pytest
from msgspec import structs

from drachma import errors
from drachma.api import pod
from drachma.controllers.podautoscaling import replicacount
from drachma.controllers.podautoscaling.replicacount import Tolerances, UsageSample
from drachma.testing import pod as build_pod
from drachma.values.quantity import Quantity

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
WINDOW = dt.timedelta(seconds=60)


def a_pod(name: str, *, phase: str = "Running", ready: str = "True", age: int = 3600, request: str = "100m") -> pod.Pod:
    requests = {"cpu": Quantity.parse(request)} if request else {}
    container = pod.Container(name="c", resources=pod.ResourceRequirements(requests=requests))
    start = NOW - dt.timedelta(seconds=age)
    condition = pod.PodCondition(type="Ready", status=ready, last_transition_time=start)
    status = pod.PodStatus(phase=phase, start_time=start, conditions=(condition,))
    return structs.replace(build_pod(name).spec(containers=(container,)).build(), status=status)


def samples(**usage: int) -> dict[str, UsageSample]:
    return {name: UsageSample(NOW, WINDOW, value) for name, value in usage.items()}


def utilization(
    pods: list[pod.Pod], usage: dict[str, UsageSample], *, target: int = 50, tolerances: Tolerances | None = None
) -> int:
    return replicacount.propose_by_utilization(
        len(pods),
        target,
        resource="cpu",
        container="",
        pods=pods,
        samples=usage,
        tolerances=tolerances or Tolerances(),
        now=NOW,
    ).replicas


@pytest.mark.parametrize(
    ("pods", "usage", "want"),
    [
        pytest.param([a_pod("a"), a_pod("b")], samples(a=100, b=100), 4, id="twice-the-target-doubles"),
        pytest.param([a_pod("a"), a_pod("b")], samples(a=20, b=20), 1, id="below-the-target-shrinks"),
        pytest.param([a_pod("a"), a_pod("b")], samples(a=55, b=54), 2, id="within-the-tolerance-stays"),
        pytest.param([a_pod("a"), a_pod("b")], samples(a=105), 2, id="missing-pods-count-as-idle-before-growth"),
        pytest.param([a_pod("a"), a_pod("b")], samples(a=10), 2, id="missing-pods-count-in-full-before-shrinking"),
        pytest.param([a_pod("a"), a_pod("b", phase="Pending")], samples(a=200), 4, id="pending-pods-count-as-idle"),
        pytest.param([a_pod("a"), a_pod("b", phase="Failed")], samples(a=100, b=900), 2, id="failed-pods-do-not-count"),
        pytest.param(
            [a_pod("a"), a_pod("b", age=30, ready="False")], samples(a=50, b=900), 2, id="cpu-of-a-start-does-not-count"
        ),
        pytest.param([a_pod("a"), a_pod("b", age=90)], samples(a=100, b=100), 4, id="a-start-counts-once-it-was-ready"),
    ],
)
def test_utilization(pods: list[pod.Pod], usage: dict[str, UsageSample], want: int) -> None:
    assert utilization(pods, usage) == want


def test_a_wider_tolerance_keeps_replicas() -> None:
    assert utilization([a_pod("a")], samples(a=70), tolerances=Tolerances(up=0.5, down=0.1)) == 1


@pytest.mark.parametrize(
    ("pods", "usage", "want_error"),
    [
        pytest.param(
            [a_pod("a", request="")],
            samples(a=1),
            "missing request for cpu in container c of Pod a",
            id="no-request",
        ),
        pytest.param(
            [a_pod("a", phase="Pending")],
            samples(),
            "did not receive metrics for targeted pods (pods might be unready)",
            id="nothing-ready",
        ),
    ],
)
def test_usage_that_cannot_be_judged(pods: list[pod.Pod], usage: dict[str, UsageSample], want_error: str) -> None:
    with pytest.raises(errors.ReconcileError) as caught:
        utilization(pods, usage)
    assert str(caught.value) == want_error


def test_an_average_over_pods() -> None:
    pods = [a_pod("a"), a_pod("b")]
    proposal = replicacount.propose_by_average(
        2, 1000, resource="cpu", pods=pods, samples=samples(a=3000, b=1000), tolerances=Tolerances(), now=NOW
    )
    assert (proposal.replicas, proposal.average_milli_value, proposal.utilization) == (4, 2000, None)
