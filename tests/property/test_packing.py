"""Packing experiments on random clusters: nothing is overcommitted, and every policy keeps its promises."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drachma.scheduler.packing import fragmentation, policies
from drachma.scheduler.packing.machines import WHOLE_GPU, Machine, Task
from drachma.simulate.packing import experiment

MODELS = ("G2", "T4")


def machines() -> st.SearchStrategy[list[Machine]]:
    return st.lists(
        st.builds(
            Machine,
            cpu=st.integers(0, 20),
            memory=st.integers(0, 20),
            gpus=st.integers(1, 4).map(lambda count: (WHOLE_GPU,) * count),
            model=st.sampled_from(MODELS),
        ),
        min_size=1,
        max_size=6,
    )


def tasks() -> st.SearchStrategy[list[Task]]:
    shapes = st.one_of(
        st.tuples(st.just(0), st.just(0)),
        st.tuples(st.just(1), st.integers(1, WHOLE_GPU)),
        st.tuples(st.integers(2, 4), st.just(WHOLE_GPU)),
    )
    models = st.frozensets(st.sampled_from(MODELS), max_size=2)
    task = st.tuples(st.integers(0, 5), st.integers(0, 5), shapes, models).map(
        lambda parts: Task(parts[0], parts[1], *parts[2], parts[3])
    )
    return st.lists(task, min_size=1, max_size=20)


@pytest.mark.parametrize("policy", policies.POLICIES)
@given(cluster=machines(), workload=tasks(), seed=st.integers(0, 3))
def test_nothing_is_overcommitted(policy: str, cluster: list[Machine], workload: list[Task], seed: int) -> None:
    outcome = run(policy, cluster, workload, seed=seed)
    assert all(min(machine.cpu, machine.memory, *machine.gpus) >= 0 for machine in outcome.machines)
    freed = sum(machine.free_milli for machine in cluster) - sum(machine.free_milli for machine in outcome.machines)
    assert outcome.allocated_milli == freed
    assert outcome == run(policy, cluster, workload, seed=seed)


@given(cluster=machines(), workload=tasks())
def test_a_task_fails_only_if_it_fits_nowhere(cluster: list[Machine], workload: list[Task]) -> None:
    outcome = run("drachma", cluster, workload, seed=1)
    if outcome.failed == 0:
        assert outcome.arrived == len(workload)
    else:
        assert any(not all(machine.fits(task) for machine in outcome.machines) for task in workload)


@given(cluster=machines(), workload=tasks())
def test_fragmentation_is_the_mean_over_tasks(cluster: list[Machine], workload: list[Task]) -> None:
    mix = fragmentation.typical_tasks(workload, popular=1.0)
    table = fragmentation.Fragmentation(mix)
    for machine in cluster:
        assert table.amount(machine) == pytest.approx(sum(share * fragments(machine, task) for task, share in mix))


def fragments(machine: Machine, task: Task) -> int:
    """The free GPU of a machine that one task cannot use, by definition."""
    can_host = sum(free >= task.gpu_milli for free in machine.gpus) >= task.gpus
    is_accessible = not task.models or machine.model in task.models
    if not task.gpus or not is_accessible or not can_host or machine.cpu < task.cpu:
        return machine.free_milli
    return sum(free for free in machine.gpus if free < task.gpu_milli)


def run(policy: str, cluster: Sequence[Machine], workload: Sequence[Task], *, seed: int) -> experiment.Outcome:
    mix = fragmentation.typical_tasks(workload)
    rng = random.Random(seed)
    return experiment.run(cluster, iter(workload), policy=policies.POLICIES[policy](mix), rng=rng)
