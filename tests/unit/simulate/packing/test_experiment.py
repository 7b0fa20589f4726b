"""Packing experiments: arrivals, deterministic runs, and the measures behind drachma's own policy."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drachma.scheduler.packing import fragmentation, policies, stranding
from drachma.scheduler.packing.machines import Machine, Task
from drachma.simulate.packing import experiment

ANY = frozenset[str]()
SHARE = Task(4_000, 0, 1, 470, ANY)
WHOLE = Task(8_000, 0, 1, 1000, ANY)
OCTET = Task(64_000, 0, 8, 1000, ANY)
CPU_ONLY = Task(2_000, 0, 0, 0, ANY)
WORKLOAD = [SHARE] * 30 + [WHOLE] * 50 + [OCTET] * 2 + [CPU_ONLY] * 18
MACHINES = [Machine(96_000, 10**6, (1000,) * 8, "G2") for _ in range(6)] + [
    Machine(16_000, 10**6, (1000,) * 2, "P100") for _ in range(8)
]
TOTAL = sum(machine.free_milli for machine in MACHINES)


def test_arrivals_request_at_most_the_demand() -> None:
    arrivals = experiment.arrivals(WORKLOAD, total_milli=TOTAL, demand=1.3, rng=random.Random(1))
    requested = sum(task.total_milli for task in arrivals)
    assert 1.1 * TOTAL < requested <= 1.3 * TOTAL + 7000


def test_a_workload_above_the_demand_loses_tasks() -> None:
    arrivals = experiment.arrivals(WORKLOAD * 10, total_milli=TOTAL, demand=1.0, rng=random.Random(1))
    assert 0.8 * TOTAL < sum(task.total_milli for task in arrivals) <= TOTAL + 7000


def _allocated(policy: str, seed: int) -> int:
    rng = random.Random(seed)
    arrivals = experiment.arrivals(WORKLOAD, total_milli=TOTAL, demand=1.3, rng=rng)
    mix = fragmentation.typical_tasks(WORKLOAD)
    outcome = experiment.run(MACHINES, arrivals, policy=policies.POLICIES[policy](mix), rng=rng)
    assert outcome.allocated_milli == TOTAL - sum(machine.free_milli for machine in outcome.machines)
    assert outcome.arrived == len(arrivals)
    return outcome.allocated_milli


@pytest.mark.parametrize("policy", list(policies.POLICIES))
def test_a_seed_decides_the_result(policy: str) -> None:
    assert _allocated(policy, 3) == _allocated(policy, 3)


def test_random_order_of_machines_decides_between_equal_ratings() -> None:
    """Machines in the order of their names would give gpu-packing the same machines for every seed."""
    mix = fragmentation.typical_tasks(WORKLOAD)
    firsts = set()
    for seed in range(20):
        policy = policies.POLICIES["gpu-packing"](mix)
        outcome = experiment.run(MACHINES, [CPU_ONLY], policy=policy, rng=random.Random(seed))
        firsts.add(next(machine.model for machine in outcome.machines if machine.cpu % 16_000))
    assert firsts == {"G2", "P100"}


def test_our_policy_allocates_more_than_fgd_on_average() -> None:
    seeds = range(6)
    assert sum(_allocated("drachma", seed) for seed in seeds) > sum(_allocated("fgd", seed) for seed in seeds)


def test_stranded_gpu_counts_missing_cpu_and_rests_of_shares() -> None:
    amounts = stranding.Stranding([fragmentation.TypicalTask(SHARE, 1.0)])
    rich = amounts.amount(Machine(96_000, 0, (1000,), "G2"))
    poor = amounts.amount(Machine(4_000, 0, (1000,), "G2"))
    none = amounts.amount(Machine(3_999, 0, (1000,), "G2"))
    assert (round(rich), round(poor), round(none)) == (60, 530, 1100)
    assert amounts.amount(Machine(96_000, 0, (0, 0), "G2")) == 0


def test_models_that_no_typical_task_may_use_are_stranded() -> None:
    picky = SHARE._replace(models=frozenset({"T4"}))
    amounts = stranding.Stranding([fragmentation.TypicalTask(picky, 1.0)])
    assert amounts.amount(Machine(96_000, 0, (500,), "T4")) < amounts.amount(Machine(96_000, 0, (500,), "G2"))


@given(
    st.lists(st.tuples(st.integers(0, 120_000), st.lists(st.integers(0, 1000), min_size=1, max_size=8)), max_size=30)
)
def test_kept_amounts_equal_new_ones(states: list[tuple[int, list[int]]]) -> None:
    """Amounts are kept by state, and shared by all states with CPU to spare."""
    mix = fragmentation.typical_tasks(WORKLOAD)
    kept = stranding.Stranding(mix)
    for cpu, gpus in states:
        machine = Machine(cpu, 0, tuple(sorted(gpus)), "G2")
        assert kept.amount(machine) == pytest.approx(stranding.Stranding(mix).amount(machine))
