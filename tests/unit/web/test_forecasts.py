"""Questions of the dashboard about quota and about the future."""

import pytest

from drachma import errors
from drachma.web import forecasts
from tests.unit.simulate.timeline.histories import node, queues
from tests.unit.simulate.timeline.test_future import cluster, queued_workload


def change(queue: str = "team", resource: str = "cpu", nominal: str = "4", flavor: str = "") -> forecasts.QuotaChange:
    return forecasts.QuotaChange(queue=queue, resource=resource, nominal=nominal, flavor=flavor)


def test_more_quota_starts_a_workload() -> None:
    current = cluster(node("a", cpu=64), queueing=(*queues("team", cpu=2), queued_workload("q", 4, "team")))
    answer = forecasts.change_quota(current, change())
    assert answer.title == "team: 4 of cpu (any) instead of 2"
    assert answer.difference.starts == {"default/q": ("a",)}
    assert not answer.is_empty
    assert forecasts.change_quota(current, change(nominal="3", flavor="any")).is_empty


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        pytest.param(change("absent"), "cluster queue 'absent': does not exist", id="queue"),
        pytest.param(change(resource="gpu"), "cluster queue team: has no quota for 'gpu'", id="resource"),
        pytest.param(change(flavor="x"), "has no quota for 'cpu' of flavor 'x'", id="flavor"),
        pytest.param(change(nominal="-1"), "quota '-1': is negative", id="negative"),
        pytest.param(change(nominal="many"), "^quota 'many': quantities must match", id="no-quantity"),
    ],
)
def test_a_change_that_cannot_be_is_refused(asked: forecasts.QuotaChange, problem: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=problem):
        forecasts.change_quota(cluster(node("a"), queueing=tuple(queues("team"))), asked)


def test_estimates_are_of_workloads_in_queues() -> None:
    waiting = [queued_workload("q", 4, "team"), queued_workload("never", 40, "team")]
    current = cluster(node("a", cpu=64), queueing=(*queues("team"), *waiting))
    estimates = [(str(each.key), each.text) for each in forecasts.estimate(current, None)]
    assert estimates == [
        ("default/q", "now"),
        ("default/never", "not within 30 days"),
    ]
