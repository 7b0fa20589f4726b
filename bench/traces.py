"""Packing policies on openb traces, next to the results of the paper: ``python -m bench traces``.

``DRACHMA_TRACES`` names the folder of the CSV files; without it the folder is looked for next to the repository.
``DRACHMA_TRACE_SEEDS`` is the number of seeds, 2 unless set; the paper has 10.
"""

import os
import pathlib

from bench import timing
from drachma.scheduler.packing import policies
from drachma.simulate.packing import trials

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
    count = int(os.environ.get("DRACHMA_TRACE_SEEDS", "2"))
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    rows = []
    longest = 0.0
    for trace, paper in PAPER.items():
        read = trials.read(folder / "openb_node_list_gpu_node.csv", folder / f"openb_pod_list_{trace}.csv")
        percents: dict[str, list[float]] = {policy: [] for policy in policies.POLICIES}
        for trial in trials.run_all(read, names=list(policies.POLICIES), demand=DEMAND, seeds=seeds):
            percents[trial.policy].append(trial.allocated_percent)
            longest = max(longest, trial.seconds)
        means = [sum(each) / count for each in percents.values()]
        shown = [f"{mean:.2f} ({published:.2f})" for mean, published in zip(means, paper, strict=False)]
        rows.append((trace, *shown, f"{means[-1]:.2f}", f"{means[-1] - means[-2]:+.2f}"))
    timing.table(
        f"allocated GPU in percent, mean of {count} seeds (the paper's in brackets); longest trial {longest:.1f} s",
        ("trace", *policies.POLICIES, "drachma - fgd"),
        rows,
    )
