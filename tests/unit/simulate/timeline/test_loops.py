"""Endless preemption in situations that users of Kueue reported, and no alarm where admission settles.

Manifests are read as a user gives them to ``drachma simulate run``.
"""

import json
import pathlib
import re
from typing import Any

import pytest
from typer.testing import CliRunner

from drachma.cli import root
from drachma.simulate.timeline import loops
from tests.conformance import vectors

FAIR_SHARING = """
apiVersion: v1
kind: ConfigMap
metadata: {name: kueue-manager-config, namespace: kueue-system}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta2
    kind: Configuration
    fairSharing:
      preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
"""
QUEUE = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  cohortName: all
  namespaceSelector: {}
  preemption: {withinClusterQueue: WITHIN, reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: any
      resources: [{name: cpu, nominalQuota: NOMINAL}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: NAME, namespace: default}
spec: {clusterQueue: NAME}
"""
JOB = """
---
apiVersion: batch/v1
kind: Job
metadata:
  name: NAME
  labels: {kueue.x-k8s.io/queue-name: QUEUE}
  annotations: {drachma.dev/duration: 10d, drachma.dev/arrival: ATs}
spec:
  parallelism: PODS
  completions: PODS
  template:
    spec:
      restartPolicy: Never
      priority: PRIORITY
      containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
"""


def queue(name: str, nominal: int, within: str) -> str:
    return QUEUE.replace("NAME", name).replace("WITHIN", within).replace("NOMINAL", str(nominal))


def jobs(*rows: tuple[str, str, int, int]) -> str:
    """Return Jobs by name, queue, number of pods and priority, which arrive one after the other."""
    text = ""
    for number, (name, where, pods, priority) in enumerate(rows):
        made = JOB.replace("NAME", name).replace("QUEUE", where).replace("PODS", str(pods))
        text += made.replace("PRIORITY", str(priority)).replace("AT", str(10 * number))
    return text


def simulate(folder: pathlib.Path, text: str) -> dict[str, Any]:
    (folder / "w.yaml").write_text(text)
    arguments = ["simulate", "run", "--profile", "cpu", "--nodes", "2", "--until", "2m", "-o", "json"]
    result = CliRunner().invoke(root.app, [*arguments, "-w", str(folder / "w.yaml")])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.output)
    return document


ILLEGAL_VICTIM = jobs(("t0", "t", 2, 0), ("p1", "p", 4, 0), ("t2", "t", 6, 0), ("p3", "p", 6, 2), ("p4", "p", 2, 0))


def test_fair_sharing_with_victims_in_the_own_queue_is_a_loop(tmp_path: pathlib.Path) -> None:
    """Like kueue#14543: evicting a workload of its own queue lowers its share, and more victims seem fair."""
    within = "LowerOrNewerEqualPriority"
    text = FAIR_SHARING + queue("p", 3, within) + queue("t", 6, within) + ILLEGAL_VICTIM
    (loop,) = simulate(tmp_path, text)["loops"]
    assert loop["jobs"] == ["default/p1", "default/p3", "default/t2"]
    assert loop["settings"] == [
        "ClusterQueue p: spec.preemption.reclaimWithinCohort with fair sharing",
        "ClusterQueue p: spec.preemption.withinClusterQueue",
    ]
    assert loop["evictions"] > 100


def test_the_named_setting_ends_the_loop(tmp_path: pathlib.Path) -> None:
    within = "LowerOrNewerEqualPriority"
    text = FAIR_SHARING + queue("p", 3, "Never") + queue("t", 6, within) + ILLEGAL_VICTIM
    assert simulate(tmp_path, text)["loops"] == []


def test_equal_final_shares_settle(tmp_path: pathlib.Path) -> None:
    """kueue#7101: the workload of 4 pods gets half of 8, and smaller and larger ones behind it do not flap."""
    text = FAIR_SHARING + queue("proj-1", 0, "Never") + queue("proj-2", 0, "Never") + queue("spare", 8, "Never")
    text += jobs(
        *((f"two-{number}", "proj-1", 2, 0) for number in range(4)),
        *((name, "proj-2", pods, 0) for pods, name in ((6, "six"), (5, "five"), (4, "four"), (3, "three"))),
    )
    document = simulate(tmp_path, text)
    assert (document["loops"], document["evictions"]) == ([], 2)
    waiting = {each["job"] for each in document["waitingJobs"]}
    assert {"default/six", "default/five", "default/three"} <= waiting
    assert "default/four" not in waiting


def test_flapping_as_reported_is_a_loop() -> None:
    """kueue#7101: in Kueue 0.13.5 the workload of 3 pods evicted others, which got their quota back each time."""
    pairs = {("default/three", "default/two-2"): 33, ("default/three", "default/two-3"): 33}
    (loop,) = loops.find_loops(pairs, [])
    assert (loop.jobs, loop.evictions) == (("default/three", "default/two-2", "default/two-3"), 66)


def test_no_alarm_on_recorded_runs_that_settle() -> None:
    """Runs of Kueue that were recorded until nothing moved any more."""
    lines = vectors.read("kueue-schedule-random")
    if lines is None:
        pytest.skip("no recorded runs")
    settled = [each for each in lines if each["answer"]["stopped"] in ("empty", "unchanged")]
    assert settled
    for line in settled:
        pairs: dict[tuple[str, str], int] = {}
        for cycle in line["answer"]["cycles"]:
            for victim, about in (cycle.get("preempted") or {}).items():
                preemptor = re.search(r"UID: uid-([^,)]+)", about["message"])
                assert preemptor is not None
                pair = f"default/{preemptor[1]}", victim
                pairs[pair] = pairs.get(pair, 0) + 1
        assert loops.find_loops(pairs, []) == [], line["name"]
