"""Kills a control plane while it schedules gangs, again and again, and checks what became of them.

The pods of a gang share a GPU by a claim of their PodGroup. After every kill, what is stored has no half gang: the
scheduler of ``drachma up`` binds all pods of a gang in one commit. No device is allocated twice, and no pod of an
incomplete gang has a node. In the end every complete gang has run.

``python -m tests.scenarios.gangdurability 30`` runs 30 rounds.
"""

import collections
import pathlib
import random
import sys
import tempfile
import time
from typing import Any

from tests import patience
from tests.scenarios import processes, queues, wire

_SIZE = 3
_PODS = "/api/v1/namespaces/default/pods"
_GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
_TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
_GATES = "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true"
_OPTIONS = (_GATES, "--nodes", "2")
_ENTRY = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}


def rounds(folder: pathlib.Path, count: int, *, seed: int, longest: float = 1.0) -> int:
    """Run rounds of creating gangs and killing. Return the number of complete gangs, which have all run."""
    rng = random.Random(seed)
    complete = [f"whole-{number}" for number in range(count)]
    for number, name in enumerate(complete):
        server = processes.start(folder, command_name="up", options=_OPTIONS)
        try:
            with wire.Wire(server) as admin:
                if not number:
                    _create_template(admin)
                _create_gang(admin, f"half-{number}", _SIZE - 1)
                _create_gang(admin, name, _SIZE)
            time.sleep(rng.uniform(0.0, longest))
        finally:
            server.kill()
        _check_stored(folder)
    with processes.running(folder, command_name="up", options=_OPTIONS) as server, wire.Wire(server) as admin:
        patience.until(
            lambda: _unfinished(admin, complete), lambda names: not names, what="all complete gangs have run"
        )
        _check_gangs(admin)
    return len(complete)


def _check_stored(folder: pathlib.Path) -> None:
    """Check the objects of a data directory with a server that changes none of them."""
    with processes.running(folder, options=(*processes.ALONE, _GATES)) as server, wire.Wire(server) as admin:
        _check_gangs(admin)


def _check_gangs(admin: wire.Wire) -> None:
    bound: collections.Counter[str] = collections.Counter()
    for each in admin.call("GET", _PODS).body["items"]:
        bound[each["spec"]["schedulingGroup"]["podGroupName"]] += bool(each["spec"].get("nodeName"))
    halves = {name: count for name, count in bound.items() if count not in (0, _SIZE)}
    assert not halves, f"gangs have nodes for some of their {_SIZE} pods: {halves}"
    devices: collections.Counter[str] = collections.Counter()
    for each in admin.call("GET", _CLAIMS).body["items"]:
        allocation = (each.get("status") or {}).get("allocation") or {"devices": {"results": []}}
        devices.update(f"{result['pool']}/{result['device']}" for result in allocation["devices"]["results"])
    twice = [name for name, count in devices.items() if count > 1]
    assert not twice, f"devices are allocated twice: {twice}"


def _create_template(admin: wire.Wire) -> None:
    request = {"deviceClassName": "gpu.simulation.drachma.dev", "allocationMode": "ExactCount", "count": 1}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}}
    template = queues.made(
        "ResourceClaimTemplate", "one-gpu", spec, namespace="default", api_version="resource.k8s.io/v1"
    )
    answer = admin.call("POST", _TEMPLATES, template)
    assert answer.code == 201, answer.body


def _create_gang(admin: wire.Wire, name: str, pods: int) -> None:
    policy = {"schedulingPolicy": {"gang": {"minCount": _SIZE}}, "resourceClaims": [_ENTRY]}
    group = queues.made("PodGroup", name, policy, namespace="default", api_version="scheduling.k8s.io/v1beta1")
    answer = admin.call("POST", _GROUPS, group)
    assert answer.code == 201, answer.body
    for number in range(pods):
        resources = {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}
        container = {"name": "c", "image": "train", "resources": resources}
        spec = {
            "schedulingGroup": {"podGroupName": name},
            "restartPolicy": "Never",
            "resourceClaims": [_ENTRY],
            "containers": [container],
        }
        document = queues.made("Pod", f"{name}-{number}", spec, namespace="default", api_version="v1")
        document["metadata"]["annotations"] = {"simulation.drachma.dev/run-seconds": "1"}
        answer = admin.call("POST", _PODS, document)
        assert answer.code == 201, answer.body


def _pods(admin: wire.Wire, prefix: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = admin.call("GET", _PODS).body["items"]
    return [each for each in items if each["metadata"]["name"].startswith(prefix)]


def _unfinished(admin: wire.Wire, gangs: list[str]) -> list[str]:
    """Return the pods of gangs that have not succeeded, and the gangs that lack pods."""
    names = []
    for gang in gangs:
        members = _pods(admin, f"{gang}-")
        names += [gang] * (_SIZE - len(members))
        names += [each["metadata"]["name"] for each in members if each["status"].get("phase") != "Succeeded"]
    return names


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        gangs = rounds(pathlib.Path(temporary) / "data", int(sys.argv[1]), seed=1)
        sys.stdout.write(f"{gangs} gangs have run as a whole\n")
