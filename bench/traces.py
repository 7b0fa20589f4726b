"""Packing policies on openb traces, next to the results of the paper: ``python -m bench traces``.

``DRACHMA_TRACES`` names the folder of the CSV files; without it the folder is looked for next to the repository.
``DRACHMA_TRACE_SEEDS`` is the number of seeds, 2 unless set; the paper has 10.
"""

import os
import pathlib
import random
import time

from bench import timing
from drachma.simulate.packing import experiment, fragmentation, openb, policies

PAPER = {
    "default": (87.47, 90.85, 91.88, 92.00, 93.08, 95.39),
    "cpu050": (91.24, 93.27, 93.79, 93.72, 93.79, 95.21),
    "cpu200": (83.77, 87.70, 89.92, 90.22, 92.40, 95.05),
    "gpushare40": (86.00, 89.56, 90.02, 90.03, 91.69, 94.15),
    "gpushare100": (79.44, 82.42, 82.65, 82.57, 85.01, 86.90),
    "gpuspec10": (87.43, 90.39, 92.18, 92.46, 93.30, 94.95),
    "gpuspec33": (86.46, 89.14, 92.12, 93.22, 93.09, 94.55),
    "multigpu20": (88.69, 92.06, 93.56, 93.71, 93.93, 95.65),
    "multigpu50": (90.27, 94.85, 95.81, 96.18, 95.74, 97.18),
}
"""Allocated percentage of GPUs at the end by random, dot-product, gpu-clustering, gpu-packing, best-fit and fgd."""
DEMAND = 1.3
FIRST_SEED = 42


def main() -> None:
    """Print the table; say so if the traces are absent."""
    default = pathlib.Path(__file__).resolve().parents[2] / "shared" / "traces" / "openb"
    folder = pathlib.Path(os.environ.get("DRACHMA_TRACES", default))
    if not folder.is_dir():
        print(f"traces: {folder} is absent; set DRACHMA_TRACES to the folder of the openb traces")
        return
    machines = openb.read_machines(folder / "openb_node_list_gpu_node.csv")
    total = sum(machine.free_milli for machine in machines)
    count = int(os.environ.get("DRACHMA_TRACE_SEEDS", "2"))
    rows = []
    longest = 0.0
    for trace, paper in PAPER.items():
        tasks = openb.read_tasks(folder / f"openb_pod_list_{trace}.csv")
        mix = fragmentation.typical_tasks(tasks)
        cells = []
        for policy in policies.POLICIES:
            percents = []
            for seed in range(FIRST_SEED, FIRST_SEED + count):
                rng, began = random.Random(seed), time.process_time()
                arrivals = experiment.arrivals(tasks, total_milli=total, demand=DEMAND, rng=rng)
                outcome = experiment.run(machines, arrivals, policy=policies.POLICIES[policy](mix), rng=rng)
                longest = max(longest, time.process_time() - began)
                percents.append(outcome.allocated_percent)
            cells.append(sum(percents) / count)
        shown = [f"{mean:.2f} ({published:.2f})" for mean, published in zip(cells, paper, strict=False)]
        rows.append((trace, *shown, f"{cells[-1]:.2f}"))
    timing.table(
        f"allocated GPU in percent, mean of {count} seeds (the paper's in brackets); longest run {longest:.1f} CPU s",
        ("trace", *policies.POLICIES),
        rows,
    )
