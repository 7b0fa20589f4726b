"""``drachma up --processes``: processes of components may end at any moment, and end with the API server's process."""

import os
import pathlib
import signal
from typing import Any

import pytest

from drachma.process import localcluster
from tests import patience
from tests.scenarios import processes, wire

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
ROLES = ("scheduler", "controllers", "nodes")
ROUND = 12
"""Pods that are created around each kill; a machine has eight devices, so all pods fit at once."""
OPTIONS = ("--nodes", "6", "--processes", "4")

TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu"},
    "spec": {
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.simulation.drachma.dev"}}]}
        },
    },
}


def _pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _workers(process: int) -> dict[str, int]:
    """IDs of the processes that a process has started, by their roles."""
    workers = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        if parent == process and b"drachma.process.worker" in command:
            workers[command[command.index(b"drachma.process.worker") + 1].decode()] = int(entry.name)
    return workers


def _create(connection: wire.Wire, path: str, document: dict[str, Any]) -> None:
    answer = connection.call("POST", path, document)
    assert answer.code == 201, answer.body


def test_each_process_is_killed_once_and_nothing_is_lost_or_made_twice(tmp_path: pathlib.Path) -> None:
    with (
        processes.running(tmp_path, command_name="up", options=OPTIONS) as server,
        wire.Wire(server) as connection,
    ):
        _create(connection, TEMPLATES, TEMPLATE)
        names: list[str] = []
        for role in ROLES:
            before = patience.until(
                lambda: _workers(server.process.pid), lambda seen: seen.keys() == set(ROLES), what="all processes run"
            )
            for number in range(ROUND):
                if number == ROUND // 2:
                    os.kill(before[role], signal.SIGKILL)
                names.append(f"{role}-{number}")
                _create(connection, PODS, _pod(names[-1]))

        def running() -> list[str]:
            pods = connection.call("GET", PODS).body["items"]
            return sorted(each["metadata"]["name"] for each in pods if each["status"].get("phase") == "Running")

        patience.until(running, lambda seen: seen == sorted(names), what="all pods run")
        pods = connection.call("GET", PODS).body["items"]
        claims = {each["metadata"]["name"]: each for each in connection.call("GET", CLAIMS).body["items"]}
        made = [each["status"]["resourceClaimStatuses"][0]["resourceClaimName"] for each in pods]
        assert sorted(made) == sorted(claims), "one claim for each pod, and no other"
        devices = [
            (result["pool"], result["device"])
            for each in claims.values()
            for result in each["status"]["allocation"]["devices"]["results"]
        ]
        assert len(devices) == len(set(devices)) == len(names), "no device is allocated twice"
        restarts = [each["status"]["containerStatuses"][0]["restartCount"] for each in pods]
        assert set(restarts) <= {0, 1}
        connection.close()
        last = _workers(server.process.pid)
        assert server.stop() == 0, "asked to stop, it ends well"
        assert not any(localcluster.process_start(each) for each in last.values()), "no process is left"


def test_the_processes_end_with_the_one_of_the_store(tmp_path: pathlib.Path) -> None:
    with processes.running(tmp_path, command_name="up", options=("--processes", "2")) as server:
        workers = _workers(server.process.pid)
        assert workers.keys() == {"components"}
        server.kill()
        patience.until(
            lambda: [each for each in workers.values() if localcluster.process_start(each)],
            lambda seen: not seen,
            what="the components end",
        )


@pytest.mark.parametrize("count", ["0", "several"])
def test_a_bad_number_is_refused_before_anything_starts(count: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match="--processes"):
        processes.start(tmp_path, command_name="up", options=("--processes", count))


def test_a_component_that_cannot_start_ends_the_cluster_with_its_reason(tmp_path: pathlib.Path) -> None:
    options = ("--processes", "2", "--record", str(tmp_path / "missing" / "record"))
    with pytest.raises(RuntimeError, match="missing/record"):
        processes.start(tmp_path, command_name="up", options=options)
