"""Schedule the public demo manifests of DRA drivers on drachma's profiles, and print a table.

python scripts/public_manifests.py FOLDER

FOLDER holds a checkout of each project in a folder of its repository's name. Nothing of them is part of drachma.
"""

from __future__ import annotations

import pathlib
import sys
from typing import NamedTuple

from drachma.api import codec
from drachma.node.simulation import hardware
from drachma.offline import clusterfiles
from drachma.simulate import ClusterState, Simulation

_NODES = 2


class Demo(NamedTuple):
    """Demo manifests of a project, and the profile of nodes that they are for."""

    repository: str
    pattern: str
    profile: str


DEMOS = (
    Demo("k8s-dra-driver-gpu", "demo/specs/quickstart/v1/gpu-test[1235].yaml", "nvidia-h100"),
    Demo("k8s-dra-driver-gpu", "demo/specs/quickstart/v1/gpu-test4.yaml", "nvidia-a100-mig"),
    Demo("k8s-dra-driver-gpu", "demo/specs/quickstart/v1/gpu-test6.yaml", "nvidia-a100"),
    Demo("k8s-dra-driver-gpu", "demo/specs/quickstart/v1/gpu-test-mps.yaml", "nvidia-h100"),
    Demo("k8s-dra-driver-gpu", "demo/specs/quickstart/v1beta1/gpu-test[1235].yaml", "nvidia-h100"),
    Demo("k8s-gpu-dra-driver", "example/example*.yaml", "amd-mi300x"),
    Demo("dra-driver-google-tpu", "demo/specs/tpu-test.yaml", "google-tpu"),
    Demo("dra-driver-cpu", "hack/examples/pod_with_resource_claim_grouped_mode.yaml", "dra-cpu"),
    Demo("intel-resource-drivers-for-kubernetes", "deployments/gaudi/examples/*-inline.yaml", "intel-gaudi"),
    Demo("intel-resource-drivers-for-kubernetes", "deployments/gpu/examples/*-inline*.yaml", "intel-gpu"),
    Demo("dranet", "tests/manifests/resourceclaim.yaml", "dranet"),
)


def main() -> None:
    """Run every demo, and print one row for each file."""
    root = pathlib.Path(sys.argv[1])
    sys.stdout.write("| project | manifest | profile | result |\n|---|---|---|---|\n")
    for demo in DEMOS:
        for path in sorted((root / demo.repository).glob(demo.pattern)):
            relative = path.relative_to(root / demo.repository)
            sys.stdout.write(f"| {demo.repository} | `{relative}` | `{demo.profile}` | {_try(path, demo.profile)} |\n")
            sys.stdout.flush()


def _try(path: pathlib.Path, profile: str) -> str:
    """Return how many pods of a manifest the scheduler places on nodes of a profile."""
    built = hardware.build(profile, _NODES)
    documents = (*(machine.node for machine in built.machines), *built.all_slices, *built.classes)
    own = [codec.decode(each) for each in documents]
    files = clusterfiles.read([str(path)], expects_pods=True)
    if files.problems:
        return files.problems[0].replace(str(path), path.name)
    schedule = Simulation(ClusterState.of([*own, *files.state.objects])).schedule()
    count = len(schedule.placements) + len(schedule.waiting)
    reason = f": {schedule.waiting[0].reason}" if schedule.waiting else ""
    return f"{len(schedule.placements)} of {count} pods are scheduled{reason}".replace("|", "\\|")


if __name__ == "__main__":
    main()
