"""Load that goes on while components of a real control plane are restarted, and what must hold all the time."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests import patience
from tests.cluster import controlplane, objects, queues
from tests.scenarios import wire

_PAUSE_SECONDS = 0.05
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"


class Churn:
    """Creates and deletes objects in a thread of its own; the first violation ends it."""

    def __init__(self, plane: controlplane.ControlPlane) -> None:
        self._plane = plane
        self._is_ended = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="churn")
        self.created = 0

    def step(self, admin: wire.Wire) -> None:
        """Create and delete some objects, and check invariants."""
        raise NotImplementedError

    def settle(self, admin: wire.Wire) -> None:
        """Wait until everything that was created has the result that it must have."""
        raise NotImplementedError

    def wait_for(self, count: int) -> None:
        """Wait until so many more objects were created."""
        goal = self.created + count
        patience.until(self._look, lambda created: created >= goal, what=f"{count} more objects are created")

    def finish(self) -> None:
        """End the load, and check the result."""
        self._is_ended.set()
        self._thread.join(patience.SECONDS)
        self._look()
        with wire.Wire(self._plane) as admin:
            self.settle(admin)

    @contextmanager
    def running(self) -> Iterator["Churn"]:
        """Go on until the end of the block."""
        self._thread.start()
        try:
            yield self
            self.finish()
        finally:
            self._is_ended.set()
            self._thread.join(patience.SECONDS)

    def _look(self) -> int:
        if self._problem is not None:
            raise self._problem
        return self.created

    def _run(self) -> None:
        try:
            with wire.Wire(self._plane) as admin:
                while not self._is_ended.wait(_PAUSE_SECONDS):
                    self.step(admin)
        except BaseException as problem:
            self._problem = problem


class PodChurn(Churn):
    """Pods with a claim each. At most so many live; a pod is deleted after it was bound."""

    def __init__(self, plane: controlplane.ControlPlane, *, limit: int) -> None:
        super().__init__(plane)
        self._limit = limit
        self._live: list[str] = []
        self._nodes: dict[str, str] = {}

    def step(self, admin: wire.Wire) -> None:
        if len(self._live) < self._limit:
            name = f"churn-{self.created}"
            objects.create(admin, objects.pod(name, template_name="one"))
            self._live.append(name)
            self.created += 1
        else:
            self._observe(admin)
            for name in [each for each in self._live if each in self._nodes][: self._limit // 2]:
                assert admin.call("DELETE", f"{objects.PODS}/{name}", {"gracePeriodSeconds": 0}).code == 200
                self._live.remove(name)
        check_devices(admin)

    def settle(self, admin: wire.Wire) -> None:
        def look() -> tuple[int, int]:
            self._observe(admin)
            return sum(each in self._nodes for each in self._live), len(objects.claims(admin))

        want = (len(self._live), len(self._live))
        patience.until(look, lambda seen: seen == want, what=f"{want[0]} pods are bound, and other claims are gone")
        devices = check_devices(admin)
        assert len(devices) == len(self._live), "every pod has its device"

    def _observe(self, admin: wire.Wire) -> None:
        """Check that no pod was lost or moved."""
        nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in _items(admin, objects.PODS)}
        assert set(self._live) <= set(nodes), f"pods were lost: {set(self._live) - set(nodes)}"
        for name in self._live:
            if nodes[name]:
                assert self._nodes.setdefault(name, nodes[name]) == nodes[name]


class JobChurn(Churn):
    """Jobs of one CPU in a queue with quota for two. A Job is deleted after it was admitted."""

    def __init__(self, plane: controlplane.ControlPlane, *, queue: str) -> None:
        super().__init__(plane)
        self._queue = queue
        self._live: set[str] = set()
        self._names: Callable[[], str] = map("job-{}".format, itertools.count()).__next__

    def step(self, admin: wire.Wire) -> None:
        if len(self._live) < 5:
            name = self._names()
            queues.create_job(admin, name, queue=self._queue, suspend=True)
            self._live.add(name)
            self.created += 1
        self._check_quota(admin)
        for name in self._admitted(admin):
            admin.call("DELETE", f"{queues.JOBS}/{name}", {"propagationPolicy": "Background"})
            self._live.discard(name)

    def settle(self, admin: wire.Wire) -> None:
        def look() -> set[str]:
            self.step_down(admin)
            return self._live

        patience.until(look, lambda left: not left, what="all Jobs are admitted")
        patience.until(lambda: _items(admin, WORKLOADS), lambda left: not left, what="all workloads are gone")

    def step_down(self, admin: wire.Wire) -> None:
        """Delete admitted Jobs without new ones."""
        self._check_quota(admin)
        for name in self._admitted(admin):
            admin.call("DELETE", f"{queues.JOBS}/{name}", {"propagationPolicy": "Background"})
            self._live.discard(name)

    def _admitted(self, admin: wire.Wire) -> list[str]:
        return [
            each["metadata"]["name"]
            for each in _items(admin, queues.JOBS)
            if each["metadata"]["name"] in self._live and each["spec"].get("suspend") is False
        ]

    def _check_quota(self, admin: wire.Wire) -> None:
        holders = [each["metadata"]["name"] for each in _items(admin, WORKLOADS) if _holds_quota(each)]
        assert len(holders) <= 2, f"quota for 2 CPUs is held by {holders}"


def check_devices(admin: wire.Wire) -> list[str]:
    """Return the devices of all claims; fail if one is there twice."""
    devices = objects.allocated_devices(objects.claims(admin))
    assert [device for device, times in Counter(devices).items() if times > 1] == []
    return devices


def _holds_quota(workload: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in workload.get("status", {}).get("conditions", ())}
    return conditions.get("QuotaReserved") == "True" and conditions.get("Finished") != "True"


def _items(admin: wire.Wire, place: str) -> list[dict[str, Any]]:
    answer = admin.call("GET", place)
    assert answer.code == 200, answer.body
    items: list[dict[str, Any]] = answer.body["items"]
    return items
