"""Simulation over time on clusters of growing size: ``python -m bench timeline``.

Jobs of five shapes arrive at a rate that uses 80 % of the GPUs, run for an hour on average, and leave.
``DRACHMA_TIMELINE_JOBS`` is the number of jobs for each size, 20,000 unless set; ``DRACHMA_TIMELINE_NODES`` is a
comma-separated list of sizes.
"""

import os
import random
import resource
import time
from collections.abc import Iterator

from bench import timing
from drachma import testing
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.timeline.events import Arrival, JobShape
from drachma.simulate.timeline.timeline import Timeline

SHAPES = ((4, 1), (8, 1), (16, 2), (32, 4), (2, 0))
"""Processors and GPUs of jobs, all equally frequent."""
GPUS = 8
HOUR = 3600.0


def arrivals(nodes: int, count: int, rng: random.Random) -> Iterator[Arrival]:
    """Yield jobs that use 80 % of the GPUs of a cluster in the long run."""
    shapes = [_shape(cpu, gpus) for cpu, gpus in SHAPES]
    mean_gpus = sum(gpus for _, gpus in SHAPES) / len(SHAPES)
    rate = 0.8 * nodes * GPUS / mean_gpus / HOUR
    now = 0.0
    for number in range(count):
        now += rng.expovariate(rate)
        yield Arrival(now, f"job-{number}", rng.choice(shapes), rng.expovariate(1 / HOUR))


def _shape(cpu: int, gpus: int) -> JobShape:
    requests = {"cpu": str(cpu), "memory": "4Gi", "example.com/gpu": str(gpus)}
    return JobShape(spec=testing.pod("job").container("c", requests=requests).build().spec)


def main() -> None:
    """Print the table."""
    count = int(os.environ.get("DRACHMA_TIMELINE_JOBS", "20000"))
    sizes = [int(each) for each in os.environ.get("DRACHMA_TIMELINE_NODES", "1000,3000,10000,30000").split(",")]
    rows = []
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110", "example.com/gpu": str(GPUS)}
    for size in sizes:
        nodes = [testing.node(f"node-{number}", allocatable=allocatable).build() for number in range(size)]
        timeline = Timeline(Simulation(ClusterState.of(nodes)))
        began = time.process_time()
        timeline.run(arrivals(size, count, random.Random(1)))
        seconds = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        measures = timeline.measures
        assert measures.completed == count
        rows.append(
            (f"{size:,}", f"{count:,}", f"{seconds / count * 1e6:.0f} us", f"{seconds:.1f} s", f"{peak:.0f} MB")
        )
    timing.table(
        "jobs that arrive, run and leave, in virtual time", ("nodes", "jobs", "CPU per job", "CPU", "peak memory"), rows
    )
