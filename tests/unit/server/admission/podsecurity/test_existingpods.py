"""Warnings about the pods of a namespace that becomes stricter."""

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from drachma.server.admission.podsecurity import existingpods
from drachma.server.admission.podsecurity.policies import LATEST, Level, LevelVersion

QUESTION = existingpods.Question(
    namespace="n", standard=LevelVersion(Level.BASELINE, LATEST), exempt_runtime_classes=frozenset({"sandbox"})
)
HEAD = 'existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:latest"'


class Stored(NamedTuple):
    value: dict[str, Any]


def pod(name: str, *, controller: str = "", **spec: Any) -> Stored:
    owners = [{"uid": "other"}, {"uid": controller, "controller": True}] if controller else []
    metadata = {"name": name, "ownerReferences": owners}
    return Stored({"metadata": metadata, "spec": {"containers": [{"name": "c"}], **spec}})


class Clock:
    """Clock that advances by a step with each look at it."""

    def __init__(self, step: float) -> None:
        self._step = step
        self._time = 0.0

    def __call__(self) -> float:
        self._time += self._step
        return self._time


def warnings(*pods: Stored, step: float = 0.0) -> list[str]:
    return list(asyncio.run(existingpods.find_warnings(QUESTION, pods, Clock(step))))


def test_pods_that_comply_are_not_mentioned() -> None:
    assert warnings(pod("a"), pod("b")) == []


@pytest.mark.parametrize(
    ("names", "want"),
    [
        pytest.param(["a"], "a: host namespaces", id="one"),
        pytest.param(["b", "a"], "a (and 1 other pod): host namespaces", id="two"),
        pytest.param(["b", "c", "a"], "a (and 2 other pods): host namespaces", id="three"),
    ],
)
def test_pods_with_the_same_violations_share_a_warning(names: list[str], want: str) -> None:
    assert warnings(*(pod(name, hostPID=True) for name in names)) == [HEAD, want]


def test_warnings_are_sorted() -> None:
    containers = [{"name": "c", "securityContext": {"privileged": True}}]
    assert warnings(pod("b", hostPID=True), pod("c"), pod("a", containers=containers)) == [
        HEAD,
        "a: privileged",
        "b: host namespaces",
    ]


def test_exempt_runtime_classes_are_not_checked() -> None:
    assert warnings(pod("a", hostPID=True, runtimeClassName="sandbox")) == []


def test_no_more_pods_than_the_limit_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(existingpods, "MOST_PODS", 2)
    some = [pod("a"), pod("b"), pod("c", hostPID=True)]
    assert warnings(*some) == ["new PodSecurity enforce level only checked against the first 2 of 3 existing pods"]


def test_one_pod_of_each_controller_is_checked_before_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(existingpods, "MOST_PODS", 2)
    some = [pod("a", controller="x"), pod("b", controller="x"), pod("c", controller="y", hostPID=True)]
    assert warnings(*some) == [
        "new PodSecurity enforce level only checked against the first 2 of 3 existing pods",
        HEAD,
        "c: host namespaces",
    ]


def test_the_time_is_limited() -> None:
    some = [pod("a", hostPID=True), pod("b", hostPID=True), pod("c", hostPID=True)]
    # The clock is past the limit when the first pod has been evaluated.
    assert warnings(*some, step=0.6)[:2] == [
        "new PodSecurity enforce level only checked against the first 1 of 3 existing pods",
        HEAD,
    ]


async def test_other_tasks_run_meanwhile() -> None:
    seen: list[str] = []

    def pods() -> Iterator[Stored]:
        for number in range(10):
            yield pod(f"p{number}")

    async def other() -> None:
        seen.append("other")

    task = asyncio.create_task(other())
    await existingpods.find_warnings(QUESTION, pods(), Clock(0.01))
    assert seen == ["other"]
    await task
