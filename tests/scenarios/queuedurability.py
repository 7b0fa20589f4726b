"""Kills a control plane with queueing while it admits jobs, again and again, and checks what became of them.

What must hold at every revision: no more quota is held than there is. In the end: every job that was acknowledged has
run, each had quota exactly once, and the queue knows that nothing is in use any more.
"""

import json
import pathlib
import random
import time
from collections import Counter
from typing import Any

from tests import patience
from tests.scenarios import processes, queues, wire

CPUS = 3
_JOBS_A_ROUND = 4
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_WORKLOADS = f"{_KUEUE}/namespaces/default/workloads"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_OPTIONS = ("--queueing", "--nodes", "1")


def rounds(folder: pathlib.Path, count: int, *, seed: int, longest: float = 1.5) -> int:
    """Runs so many rounds of creating jobs and killing; how many jobs were acknowledged, and have run."""
    chance = random.Random(seed)
    names: list[str] = []
    beginning = ""
    for number in range(count):
        server = processes.start(folder, command_name="up", options=_OPTIONS)
        try:
            beginning = beginning or _make_queue(server)
            names += _create_jobs(server, [f"job-{number}-{each}" for each in range(_JOBS_A_ROUND)])
            time.sleep(chance.uniform(0.0, longest))
        finally:
            server.kill()
    with processes.running(folder, command_name="up", options=_OPTIONS) as server, wire.Wire(server) as admin:
        patience.until(lambda: _unfinished(admin), lambda rest: not rest, what="all jobs are over")
        usage = patience.until(lambda: _usage(admin), lambda used: used == "0", what="nothing is in use")
        assert usage == "0"
        admissions = _check_history(admin, beginning)
    assert sorted(admissions) == sorted(names), "a workload for each job, and no other"
    assert set(admissions.values()) == {1}, f"admitted more than once: {admissions}"
    return len(names)


def _make_queue(server: processes.Process) -> str:
    """The queue that jobs wait in; the revision before anybody waits."""
    quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": str(CPUS)}]}
    spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}]}
    with wire.Wire(server) as admin:
        for plural, document in (
            ("resourceflavors", queues.made("ResourceFlavor", "default", {})),
            ("clusterqueues", queues.made("ClusterQueue", "team", spec)),
            ("namespaces/default/localqueues", queues.made("LocalQueue", "team", {"clusterQueue": "team"})),
        ):
            answer = admin.call("POST", f"{_KUEUE}/{plural}", document)
            assert answer.code == 201, answer.body
        return str(admin.call("GET", _WORKLOADS).body["metadata"]["resourceVersion"])


def _create_jobs(server: processes.Process, names: list[str]) -> list[str]:
    """Creates jobs of one pod that runs for a second; those that the server acknowledged."""
    acknowledged = []
    with wire.Wire(server) as admin:
        for name in names:
            answer = admin.call("POST", _JOBS, queues.job_document(name, seconds=1))
            assert answer.code == 201, answer.body
            acknowledged.append(name)
    return acknowledged


def _unfinished(admin: wire.Wire) -> list[str]:
    """Jobs that have not come to their end."""
    return [each["metadata"]["name"] for each in admin.call("GET", _JOBS).body["items"] if not _has(each, "Complete")]


def _usage(admin: wire.Wire) -> str:
    """What the queue says of its processors in use."""
    status = admin.call("GET", f"{_KUEUE}/clusterqueues/team").body.get("status", {})
    return str(status["flavorsUsage"][0]["resources"][0]["total"]) if status.get("flavorsUsage") else "unknown"


def _check_history(admin: wire.Wire, beginning: str) -> Counter[str]:
    """Follows all workloads from the beginning; how often that of each job came to have quota."""
    newest = max(int(each["metadata"]["resourceVersion"]) for each in admin.call("GET", _WORKLOADS).body["items"])
    held: dict[str, int] = {}
    admissions: Counter[str] = Counter()
    for line in admin.open("GET", f"{_WORKLOADS}?watch=1&resourceVersion={beginning}"):
        event = json.loads(line)
        assert event["type"] != "ERROR", event
        document = event["object"]
        owner = document["metadata"]["ownerReferences"][0]["name"]
        amount = 0 if event["type"] == "DELETED" else _held(document)
        if amount and not held.get(owner):
            admissions[owner] += 1
        held[owner] = amount
        revision = int(document["metadata"]["resourceVersion"])
        assert sum(held.values()) <= CPUS, f"revision {revision}: {held}"
        if revision >= newest:
            return admissions
    raise AssertionError(f"the watch ended before {newest}")


def _held(document: Any) -> int:
    """Processors that a workload has quota for."""
    if not _has(document, "QuotaReserved") or _has(document, "Finished"):
        return 0
    assigned = document["status"]["admission"]["podSetAssignments"]
    return sum(int(each["resourceUsage"]["cpu"]) for each in assigned)


def _has(document: Any, condition: str) -> bool:
    known = document.get("status", {}).get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in known)
