"""Kills of the processes of ``drachma up --processes 4`` under load, and the time until all pods run.

``python -m bench.processkills [KILLS] [ROLE...]`` kills each process so many times with SIGKILL, at a random moment
while pods with a device each are created. ``server`` is the process of the store, which ends all others and is started
again on the same data. After each kill it checks that no acknowledged pod is lost, that each pod has one claim and no
claim is left over, and that no device is allocated twice; then it deletes the pods. It ends with the first violation.
"""

from __future__ import annotations

import http.client
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from tests.scenarios import processes, test_processes, wire

from bench import timing
from drachma.cli.benchmark import meter

_T = TypeVar("_T")

_ROLES: Final = ("scheduler", "controllers", "nodes", "server")
_PODS: Final = 24
_PAUSE_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 240.0


class _Cluster:
    """A control plane, and a connection to it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self.server = processes.start(folder, command_name="up", options=test_processes.OPTIONS)
        self.connection = wire.Wire(self.server)

    def restart(self) -> None:
        """Start it again on the same data."""
        self.connection.close()
        self.server.process.wait()
        self.server = processes.start(self._folder, command_name="up", options=test_processes.OPTIONS)
        self.connection = wire.Wire(self.server)

    def process_of(self, role: str) -> int:
        """Return the process of a role, once all processes run."""
        if role == "server":
            return self.server.process.pid
        return _wait(lambda: test_processes._workers(self.server.process.pid).get(role) or 0, f"process of {role}")

    def items(self, path: str) -> list[dict[str, Any]]:
        """Return the objects of a collection."""
        items: list[dict[str, Any]] = self.connection.call("GET", path).body["items"]
        return items


def _wait(look: Callable[[], _T], what: str) -> _T:
    """Return the first true result of a function."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while not (seen := look()):
        assert time.monotonic() < end, f"{what}: not within {_PATIENCE_SECONDS:.0f} s"
        time.sleep(_PAUSE_SECONDS)
    return seen


def _kill_once(cluster: _Cluster, role: str, number: int, rng: random.Random) -> float:
    """Kill a process while pods are created. Return the seconds until all pods run."""
    process, moment = cluster.process_of(role), rng.randrange(_PODS)
    acknowledged, killed_at = set(), 0.0
    for position in range(_PODS):
        name = f"{role}-{number}-{position}"
        if position == moment:
            time.sleep(rng.random() * 0.2)
            os.kill(process, signal.SIGKILL)
            killed_at = time.monotonic()
        try:
            answer = cluster.connection.call("POST", test_processes.PODS, test_processes._pod(name))
            assert answer.code == 201, answer.body
            acknowledged.add(name)
        except (OSError, http.client.HTTPException):
            assert role == "server", "only the end of the server ends connections"
            cluster.restart()
    if role == "server":
        _wait(lambda: cluster.server.process.pid != process or cluster.server.process.poll() is not None, "its end")
        if cluster.server.process.pid == process:
            cluster.restart()

    def are_running() -> bool:
        phases = {each["metadata"]["name"]: each["status"].get("phase") for each in cluster.items(test_processes.PODS)}
        assert acknowledged <= phases.keys(), f"lost: {acknowledged - phases.keys()}"
        return set(phases.values()) == {"Running"}

    _wait(are_running, f"all pods run after kill {number} of {role}")
    seconds = time.monotonic() - killed_at
    _check(cluster)
    _clean_up(cluster)
    return seconds


def _check(cluster: _Cluster) -> None:
    pods = cluster.items(test_processes.PODS)
    claims = {each["metadata"]["name"]: each for each in cluster.items(test_processes.CLAIMS)}
    used = [each["status"]["resourceClaimStatuses"][0]["resourceClaimName"] for each in pods]
    assert sorted(used) == sorted(claims), "one claim for each pod, and no other"
    results = [claim["status"]["allocation"]["devices"]["results"] for claim in claims.values()]
    devices = [(each["pool"], each["device"]) for per_claim in results for each in per_claim]
    assert len(devices) == len(set(devices)) == len(pods), "no device is allocated twice"
    for name, claim in claims.items():
        assert len(claim["status"]["reservedFor"]) == 1, f"claim {name} is reserved for its pod alone"


def _clean_up(cluster: _Cluster) -> None:
    for each in cluster.items(test_processes.PODS):
        cluster.connection.call("DELETE", f"{test_processes.PODS}/{each['metadata']['name']}?gracePeriodSeconds=1")
    _wait(lambda: not cluster.items(test_processes.PODS), "all pods are gone")
    _wait(lambda: not cluster.items(test_processes.CLAIMS), "all claims are gone")


def main(arguments: Sequence[str] = ()) -> None:
    kills = int(arguments[0]) if arguments else 100
    rng, rows = random.Random(1), []
    with tempfile.TemporaryDirectory() as folder:
        cluster = _Cluster(pathlib.Path(folder))
        try:
            test_processes._create(cluster.connection, test_processes.TEMPLATES, test_processes.TEMPLATE)
            for role in arguments[1:] or _ROLES:
                seconds = sorted(_kill_once(cluster, role, number, rng) for number in range(kills))
                rows.append((role, str(kills), *(f"{meter.percentile(seconds, each):.1f} s" for each in (50, 90, 100))))
                print(f"{role}: {kills} kills, longest recovery {seconds[-1]:.1f} s", file=sys.stderr)
        finally:
            cluster.server.kill()
    timing.table("Kills of processes: until all pods run", ("process", "kills", "p50", "p90", "longest"), rows)


if __name__ == "__main__":
    main(sys.argv[1:])
