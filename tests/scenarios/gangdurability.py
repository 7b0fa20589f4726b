"""Kills a control plane while it schedules gangs, again and again, and checks what became of them.

In the end every complete gang has run as a whole, also one of which the process had bound some pods only when it was
killed. No pod of an incomplete gang ever has a node.
"""

import pathlib
import random
import time
from typing import Any

from tests import patience
from tests.scenarios import processes, queues, wire

_SIZE = 3
_PODS = "/api/v1/namespaces/default/pods"
_GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
_OPTIONS = ("--gangs", "--nodes", "2")


def rounds(folder: pathlib.Path, count: int, *, seed: int, longest: float = 1.0) -> int:
    """Run rounds of creating gangs and killing. Return the number of complete gangs, which have all run."""
    rng = random.Random(seed)
    complete = [f"whole-{number}" for number in range(count)]
    for number, name in enumerate(complete):
        server = processes.start(folder, command_name="up", options=_OPTIONS)
        try:
            with wire.Wire(server) as admin:
                _create_gang(admin, f"half-{number}", _SIZE - 1)
                _create_gang(admin, name, _SIZE)
            time.sleep(rng.uniform(0.0, longest))
        finally:
            server.kill()
    with processes.running(folder, command_name="up", options=_OPTIONS) as server, wire.Wire(server) as admin:
        patience.until(
            lambda: _unfinished(admin, complete), lambda names: not names, what="all complete gangs have run"
        )
        bound = [each["metadata"]["name"] for each in _pods(admin, "half-") if each["spec"].get("nodeName")]
    assert not bound, f"pods of incomplete gangs have nodes: {bound}"
    return len(complete)


def _create_gang(admin: wire.Wire, name: str, pods: int) -> None:
    policy = {"schedulingPolicy": {"gang": {"minCount": _SIZE}}}
    group = queues.made("PodGroup", name, policy, namespace="default", api_version="scheduling.k8s.io/v1beta1")
    answer = admin.call("POST", _GROUPS, group)
    assert answer.code == 201, answer.body
    for number in range(pods):
        container = {"name": "c", "image": "train", "resources": {"requests": {"cpu": "1"}}}
        spec = {
            "schedulingGroup": {"podGroupName": name},
            "restartPolicy": "Never",
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
