"""Limits of scaling decisions, with and without a behavior."""

import datetime as dt

import pytest

from drachma.api import horizontalpodautoscaler as hpa
from drachma.controllers.podautoscaling import behavior

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def a_spec(*, rules: hpa.Behavior | None = None, least: int = 1, most: int = 100) -> hpa.HorizontalPodAutoscalerSpec:
    return hpa.HorizontalPodAutoscalerSpec(min_replicas=least, max_replicas=most, behavior=rules)


def pods(value: int, seconds: int = 60) -> hpa.ScalingPolicy:
    return hpa.ScalingPolicy(type="Pods", value=value, period_seconds=seconds)


def percent(value: int, seconds: int = 60) -> hpa.ScalingPolicy:
    return hpa.ScalingPolicy(type="Percent", value=value, period_seconds=seconds)


def decide(
    spec: hpa.HorizontalPodAutoscalerSpec, current: int, replicas: int, *past: tuple[int, int]
) -> behavior.Decision:
    """Decide with past changes: seconds ago, and amount."""
    history = behavior.History()
    for seconds, change in past:
        history.scale(change, now=NOW - dt.timedelta(seconds=seconds))
    return behavior.decide(spec, history, current=current, replicas=replicas, now=NOW)


@pytest.mark.parametrize(
    ("current", "replicas", "most", "want", "want_reason"),
    [
        pytest.param(1, 10, 100, 4, "ScaleUpLimit", id="few-replicas-grow-to-four"),
        pytest.param(5, 50, 100, 10, "ScaleUpLimit", id="many-replicas-double"),
        pytest.param(5, 9, 7, 7, "TooManyReplicas", id="maximum"),
        pytest.param(5, 0, 7, 1, "TooFewReplicas", id="minimum"),
        pytest.param(5, 6, 7, 6, "DesiredWithinRange", id="within"),
    ],
)
def test_limits_without_a_behavior(current: int, replicas: int, most: int, want: int, want_reason: str) -> None:
    decision = decide(a_spec(most=most), current, replicas)
    assert (decision.replicas, decision.limit[0]) == (want, want_reason)
    assert decision.is_limited == (want != replicas)


def test_a_scale_down_waits_for_the_highest_recommendation_of_five_minutes() -> None:
    history = behavior.History()
    history.start(8, now=NOW)
    later = NOW + dt.timedelta(seconds=299)
    waiting = behavior.decide(a_spec(), history, current=8, replicas=2, now=later)
    assert (waiting.replicas, waiting.stabilization[0]) == (8, "ScaleDownStabilized")
    done = behavior.decide(a_spec(), history, current=8, replicas=2, now=later + dt.timedelta(seconds=2))
    assert (done.replicas, done.stabilization[0]) == (2, "ReadyForNewScale")


@pytest.mark.parametrize(
    ("rules", "current", "replicas", "past", "want", "want_reason"),
    [
        pytest.param(
            hpa.ScalingRules(policies=(pods(2), percent(10))), 10, 30, (), 12, "ScaleUpLimit", id="most-change"
        ),
        pytest.param(
            hpa.ScalingRules(policies=(pods(2), percent(10)), select_policy="Min"),
            10,
            30,
            (),
            11,
            "ScaleUpLimit",
            id="least-change",
        ),
        pytest.param(
            hpa.ScalingRules(policies=(pods(2),), select_policy="Disabled"),
            10,
            30,
            (),
            10,
            "ScaleUpLimit",
            id="disabled",
        ),
        pytest.param(
            hpa.ScalingRules(policies=(pods(4),)),
            10,
            30,
            ((30, 3),),
            11,
            "ScaleUpLimit",
            id="changes-of-the-period-count",
        ),
        pytest.param(
            hpa.ScalingRules(policies=(pods(4),)), 10, 30, ((90, 3),), 14, "ScaleUpLimit", id="older-changes-do-not"
        ),
    ],
)
def test_rules_of_scaling_up(
    rules: hpa.ScalingRules,
    current: int,
    replicas: int,
    past: tuple[tuple[int, int], ...],
    want: int,
    want_reason: str,
) -> None:
    decision = decide(a_spec(rules=hpa.Behavior(scale_up=rules)), current, replicas, *past)
    assert (decision.replicas, decision.limit[0]) == (want, want_reason)


@pytest.mark.parametrize(
    ("rules", "want", "want_reason"),
    [
        pytest.param(hpa.ScalingRules(policies=(percent(50), pods(1))), 5, "ScaleDownLimit", id="most-change"),
        pytest.param(
            hpa.ScalingRules(policies=(percent(50), pods(1)), select_policy="Min"),
            9,
            "ScaleDownLimit",
            id="least-change",
        ),
        pytest.param(hpa.ScalingRules(policies=(percent(100),)), 2, "TooFewReplicas", id="minimum"),
    ],
)
def test_rules_of_scaling_down(rules: hpa.ScalingRules, want: int, want_reason: str) -> None:
    at_once = hpa.ScalingRules(
        policies=rules.policies, select_policy=rules.select_policy, stabilization_window_seconds=0
    )
    decision = decide(a_spec(rules=hpa.Behavior(scale_down=at_once), least=2), 10, 0)
    assert (decision.replicas, decision.limit[0]) == (want, want_reason)


def test_a_window_of_scaling_up_takes_the_lowest_recommendation() -> None:
    up = hpa.ScalingRules(policies=(pods(100),), stabilization_window_seconds=60)
    spec, history = a_spec(rules=hpa.Behavior(scale_up=up)), behavior.History()
    history.start(3, now=NOW)
    decision = behavior.decide(spec, history, current=3, replicas=9, now=NOW + dt.timedelta(seconds=30))
    assert (decision.replicas, decision.stabilization[0]) == (3, "ScaleUpStabilized")
    decision = behavior.decide(spec, history, current=3, replicas=9, now=NOW + dt.timedelta(seconds=61))
    assert decision.replicas == 9
