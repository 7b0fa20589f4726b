"""Gangs: membership by all three sources, and sizes."""

import pytest

from drachma.api import meta, pod, podgroup
from drachma.scheduler.snapshot import gangs
from drachma.testing import pod as a_pod

POD_GROUP = pod.PodSchedulingGroup(pod_group_name="g")


def group(min_count: int | None) -> podgroup.PodGroup:
    policy = podgroup.PodGroupSchedulingPolicy(
        gang=None if min_count is None else podgroup.GangSchedulingPolicy(min_count=min_count)
    )
    return podgroup.PodGroup(
        metadata=meta.ObjectMeta(name="g", namespace="default"), spec=podgroup.PodGroupSpec(scheduling_policy=policy)
    )


def labelled(name: str, size: str, *, label: str = gangs.LABEL, annotation: str = gangs.SIZE) -> pod.Pod:
    return a_pod(name).uid(name).label(label, "g").annotation(annotation, size).build()


@pytest.mark.parametrize(
    ("made", "source"),
    [
        pytest.param(labelled("p", "2"), gangs.Source.LABEL, id="label"),
        pytest.param(
            labelled("p", "2", label=gangs.KUEUE_LABEL, annotation=gangs.KUEUE_SIZE), gangs.Source.KUEUE, id="kueue"
        ),
        pytest.param(
            a_pod("p").uid("p").label(gangs.LABEL, "other").spec(scheduling_group=POD_GROUP).build(),
            gangs.Source.POD_GROUP,
            id="pod-group-before-labels",
        ),
    ],
)
def test_sources(made: pod.Pod, source: gangs.Source) -> None:
    known = gangs.Gangs()
    known.put_group(group(2))
    known.put_pod(made)
    gang = known.of(made)
    assert isinstance(gang, gangs.Gang)
    assert (gang.key, gang.size, set(gang.members)) == (gangs.GangKey("default", source, "g"), 2, {"p"})


@pytest.mark.parametrize("size", ["", "0", "-1", "two", "1.5", "1_0", "12345678901", "٣"])
def test_a_size_that_cannot_be(size: str) -> None:
    undefined = gangs.Gangs().of(labelled("p", size))
    assert undefined == gangs.Undefined(
        f'label drachma.dev/gang: g: annotation drachma.dev/gang-size: "{size}": '
        "expected the number of pods of the gang, 1 or more"
    )


def test_members_that_do_not_agree_wait_for_the_most() -> None:
    known = gangs.Gangs()
    for name, size in (("a", "2"), ("b", "3")):
        known.put_pod(labelled(name, size))
    gang = known.of(labelled("a", "2"))
    assert isinstance(gang, gangs.Gang)
    assert gang.size == 3


def test_a_group_without_a_number_needs_one_pod() -> None:
    known = gangs.Gangs()
    member = a_pod("p").uid("p").spec(scheduling_group=POD_GROUP).build()
    problem = 'waiting for pods\'s pod group "g" to appear in scheduling queue'
    assert known.of(member) == gangs.Undefined(problem, is_silent=True)
    known.put_group(group(None))
    gang = known.of(member)
    assert isinstance(gang, gangs.Gang)
    assert gang.size == 1
    assert known.of(a_pod("q").build()) is None


def test_who_has_failed_or_gone_is_no_member() -> None:
    known = gangs.Gangs()
    for name in ("a", "b", "c"):
        known.put_pod(labelled(name, "3"))
    fork = known.fork()
    known.put_pod(ended("b", "Failed"))
    known.remove_pod(labelled("c", "3"))
    assert [set(each.of(labelled("a", "3")).members) for each in (known, fork)] == [{"a"}, {"a", "b", "c"}]  # type: ignore[union-attr]


def test_nobody_waits_for_who_has_succeeded() -> None:
    known = gangs.Gangs()
    known.put_pod(labelled("a", "3"))
    known.put_pod(ended("b", "Succeeded"))
    gang = known.of(labelled("a", "3"))
    assert isinstance(gang, gangs.Gang)
    assert (set(gang.members), gang.done, gang.size) == ({"a"}, 1, 3)


def ended(name: str, phase: str) -> pod.Pod:
    return a_pod(name).uid(name).label(gangs.LABEL, "g").annotation(gangs.SIZE, "3").phase(phase).build()
