"""State of pods, and conditions."""

import datetime as dt
from typing import Any

import pytest
from msgspec import structs

from drachma.api import pod
from drachma.claims import conditions, podstate, wellknown
from drachma.testing import pod as a_pod

_NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC)
_SECOND = _NOW.replace(microsecond=0)
_EARLIER = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def like(*, node: str = "", is_going: bool = False, **status: Any) -> pod.Pod:
    made = a_pod("p").build()
    metadata = structs.replace(made.metadata, deletion_timestamp=_EARLIER if is_going else None, generation=7)
    return pod.Pod(metadata=metadata, spec=pod.PodSpec(node_name=node), status=pod.PodStatus(**status))


@pytest.mark.parametrize(
    ("examined", "want_ended", "want_done"),
    [
        pytest.param(like(phase="Running", node="n"), False, False, id="running"),
        pytest.param(like(phase="Succeeded", node="n"), True, True, id="succeeded"),
        pytest.param(like(phase="Failed", node="n"), True, True, id="failed"),
        pytest.param(like(phase="Pending", is_going=True), False, True, id="goes-before-it-had-a-node"),
        pytest.param(like(phase="Running", node="n", is_going=True), False, False, id="goes-from-a-node"),
        pytest.param(like(phase="Unknown"), False, False, id="unknown"),
    ],
)
def test_how_far_a_pod_is(examined: pod.Pod, want_ended: bool, want_done: bool) -> None:
    assert (podstate.has_ended(examined), podstate.is_done(examined)) == (want_ended, want_done)


def target(status: str, reason: str) -> pod.PodCondition:
    return pod.PodCondition(
        type=wellknown.DISRUPTION_TARGET, status=status, reason=reason, message="m", last_transition_time=_EARLIER
    )


@pytest.mark.parametrize(
    ("before", "want"),
    [
        pytest.param((), _SECOND, id="new"),
        pytest.param((target("False", "r"),), _SECOND, id="another-status"),
        pytest.param((target("True", "other"),), _EARLIER, id="another-reason-keeps-the-time"),
        pytest.param((target("True", "r"),), None, id="it-says-so-already"),
    ],
)
def test_the_condition_of_a_pod_that_is_taken_away(before: Any, want: dt.datetime | None) -> None:
    condition = podstate.disruption_target(like(conditions=before), reason="r", message="m", now=_NOW)
    if want is None:
        assert condition is None
    else:
        assert condition is not None
        assert (condition.status, condition.last_transition_time, condition.observed_generation) == ("True", want, 7)


def test_conditions_are_found_by_type() -> None:
    ready = pod.PodCondition(type="Ready", status="True")
    assert conditions.find((target("True", "r"), ready), "Ready") is ready
    assert conditions.find((), "Ready") is None
    assert conditions.is_true((ready,), "Ready")
    assert not conditions.is_true((pod.PodCondition(type="Ready", status="False"),), "Ready")
    assert not conditions.is_true((), "Ready")
