"""Fakes of the services of a node, for tests of the workers of pods and containers.

All fakes write their calls into one list, so that tests can check the order across services.
"""

import asyncio
import datetime as dt
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import meta
from drachma.api.pod import Container, Pod, PodSpec, PodStatus
from drachma.node.logs.log import Log, MemoryLog
from drachma.node.pods import resizing, services
from drachma.node.pods.admission import ADMITTED, Verdict
from drachma.node.pods.containerstate import Records, ResourceStatuses
from drachma.node.pods.podaddresses import PodAddresses
from drachma.node.probes.watching import Probes
from drachma.node.runtimes import protocol
from drachma.testing.manualclock import ManualClock


def make_pod(*names: str, init: Sequence[Container] = (), policy: str = "Always", **spec: Any) -> Pod:
    """Return a pod with containers of these names, or one container ``c``."""
    return Pod(
        metadata=meta.ObjectMeta(name="p", namespace="ns", uid="u", resource_version="1"),
        spec=PodSpec(
            containers=tuple(Container(name=name) for name in names or ("c",)),
            init_containers=tuple(init),
            restart_policy=policy,
            node_name="n",
            **spec,
        ),
    )


def deleted(pod: Pod, *, grace: int = 30) -> Pod:
    """Return the version of a pod that is being deleted."""
    metadata = structs.replace(
        pod.metadata,
        deletion_timestamp=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        deletion_grace_period_seconds=grace,
        resource_version=str(int(pod.metadata.resource_version) + 1),
    )
    return structs.replace(pod, metadata=metadata)


class Exec(NamedTuple):
    """A session of a command that has ended already."""

    exit_: protocol.Exit

    async def output(self) -> Any:
        return
        yield

    async def feed(self, data: bytes) -> None:
        raise NotImplementedError

    async def end_input(self) -> None:
        raise NotImplementedError

    def resize(self, width: int, height: int) -> None:
        raise NotImplementedError

    async def wait(self) -> protocol.Exit:
        return self.exit_

    async def close(self) -> None:
        pass


class FakeRun:
    """A run of a container that ends after some seconds, or when it is stopped."""

    def __init__(self, calls: list[str], clock: ManualClock, name: str, run_id: str, *, seconds: float, code: int):
        self.id = run_id
        self.log: Log = MemoryLog()
        self.probe_codes = [0]
        self._calls = calls
        self._name = name
        self._end: asyncio.Future[protocol.Exit] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(clock, seconds, code))

    async def _live(self, clock: ManualClock, seconds: float, code: int) -> None:
        if seconds:
            await clock.sleep(seconds)
        if not self._end.done():
            self._end.set_result(protocol.Exit(code))

    async def wait(self) -> protocol.Exit:
        return await asyncio.shield(self._end)

    async def stop(self, grace_seconds: float) -> None:
        self._calls.append(f"stop {self._name} {grace_seconds:g}")
        if not self._end.done():
            self._end.set_result(protocol.Exit(143))

    async def execute(self, command: protocol.Command) -> Exec:
        code = self.probe_codes.pop(0) if len(self.probe_codes) > 1 else self.probe_codes[0]
        return Exec(protocol.Exit(code))

    async def attach(self) -> protocol.Session:
        raise NotImplementedError

    async def connect(self, port: int) -> protocol.Connection:
        raise NotImplementedError

    def usage(self) -> protocol.Usage:
        raise NotImplementedError


class Plan(NamedTuple):
    """Course of the runs of a container: how long each lasts, and its exit code."""

    seconds: float = 1e9
    code: int = 0


class FakeRuntime:
    """Runs containers by plan. The last plan of a container repeats."""

    name = "fake://1"
    has_files = False

    def __init__(self, calls: list[str], clock: ManualClock) -> None:
        self.plans: dict[str, list[Plan | protocol.StartError]] = {}
        self.starts: list[float] = []
        """Times of all starts, in seconds since the clock began."""
        self.runs: dict[str, FakeRun] = {}
        self.update_errors: list[Exception] = []
        self.survivors: set[str] = set()
        """Ids of the runs of an earlier agent that still run."""
        self._calls = calls
        self._clock = clock
        self._beginning = clock.monotonic()

    def unenforced(self, work: protocol.Work) -> Sequence[str]:
        return ()

    async def start(self, work: protocol.Work) -> FakeRun:
        name = work.container.name
        self.starts.append(self._clock.monotonic() - self._beginning)
        plans = self.plans.get(name, [Plan()])
        plan = plans.pop(0) if len(plans) > 1 else plans[0]
        if isinstance(plan, protocol.StartError):
            raise plan
        self._calls.append(f"start {name}")
        return self._run(name, f"fake://{name}/{work.attempt}", plan)

    def _run(self, name: str, run_id: str, plan: Plan) -> FakeRun:
        run = FakeRun(self._calls, self._clock, name, run_id, seconds=plan.seconds, code=plan.code)
        self.runs[name] = run
        return run

    async def update(self, work: protocol.Work) -> None:
        amounts = work.container.resources.requests.items()
        self._calls.append(f"update {work.container.name} {' '.join(f'{name}={amount}' for name, amount in amounts)}")
        if self.update_errors:
            raise self.update_errors.pop(0)

    async def recall(self, work: protocol.Work, name: str, *, since: dt.datetime) -> FakeRun | None:
        return self._run(work.container.name, name, Plan()) if name in self.survivors else None

    async def retain(self, uids: Set[str]) -> None:
        raise NotImplementedError

    def log(self, work: protocol.Work) -> Log | None:
        return None

    def forget(self, uid: str) -> None:
        self._calls.append("forget")

    async def close(self) -> None:
        raise NotImplementedError


class FakeAPI:
    """Stores statuses and events, and answers with scripted errors first."""

    def __init__(self, calls: list[str]) -> None:
        self.statuses: list[dict[str, Any]] = []
        self.events: list[tuple[str, str]] = []
        self.status_errors: list[Exception] = []
        self.delete_errors: list[Exception] = []
        self.recall_errors: list[Exception] = []
        self.records: Records = {}
        self.policies: resizing.Policies = {}
        self._version = 100
        self._calls = calls

    @property
    def phases(self) -> list[str]:
        """Phases of all statuses, without repetitions."""
        phases = [each["phase"] for each in self.statuses]
        return [each for number, each in enumerate(phases) if not number or phases[number - 1] != each]

    @property
    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.events]

    async def write_status(self, pod: Pod, content: dict[str, Any]) -> Pod:
        if self.status_errors:
            raise self.status_errors.pop(0)
        self.statuses.append(content)
        self._version += 1
        metadata = structs.replace(pod.metadata, resource_version=str(self._version))
        fields = {key: content[key] for key in ("phase", "conditions") if key in content}
        return structs.replace(pod, metadata=metadata, status=msgspec.convert(fields, PodStatus))

    async def delete(self, pod: Pod) -> None:
        if self.delete_errors:
            raise self.delete_errors.pop(0)
        self._calls.append("delete")

    async def resize_policies(self, pod: Pod) -> resizing.Policies:
        return self.policies

    async def recall(self, pod: Pod) -> Records:
        if self.recall_errors:
            raise self.recall_errors.pop(0)
        return self.records

    def record(self, pod: Pod, *, reason: str, message: str, is_warning: bool = False) -> None:
        self.events.append((reason, message))


class FakeClaims:
    """Prepares claims, after scripted failures."""

    def __init__(self, calls: list[str]) -> None:
        self.failures: list[str] = []
        self._calls = calls

    async def prepare(self, pod: Pod) -> None:
        self._calls.append("prepare")
        if self.failures:
            raise errors.NodeError(self.failures.pop(0))

    async def unprepare(self, pod: Pod) -> None:
        self._calls.append("unprepare")
        if self.failures:
            raise errors.NodeError(self.failures.pop(0))

    def cdi_devices(self, pod: Pod, container: Container) -> Sequence[str]:
        return ()

    def device_health(self, pod: Pod) -> ResourceStatuses:
        return {}


class FakeSetups(services.NoSetups):
    """Hooks and probes of containers."""

    def __init__(self, calls: list[str], clock: ManualClock) -> None:
        self.probes_of: dict[str, Probes] = {}
        self.start_problem: str | None = None
        self.stop_seconds = 0.0
        self.message = ""
        self._calls = calls
        self._clock = clock

    async def begin(self, pod: Pod) -> None:
        self._calls.append("begin")

    def probes(self, pod: Pod, container: Container) -> Probes | None:
        return self.probes_of.get(container.name)

    async def run_start_hook(self, pod: Pod, container: str, run: protocol.Container) -> str | None:
        return self.start_problem

    async def run_stop_hook(self, pod: Pod, container: str, run: protocol.Container, *, seconds: float) -> str | None:
        if self.stop_seconds:
            self._calls.append(f"hook {container} {seconds:g}")
            await self._clock.sleep(min(self.stop_seconds, seconds))
        return None

    async def termination_message(
        self, pod: Pod, container: str, run: protocol.Container, *, exit_: protocol.Exit
    ) -> str:
        return self.message


class FakeResources:
    """Admits pods by a fixed verdict."""

    def __init__(self) -> None:
        self.verdict: Verdict = ADMITTED
        self.resize_wait: resizing.Waiting | None = None
        self.notice = ""

    def admit(self, pod: Pod) -> Verdict:
        return self.verdict

    def check_resize(self, pod: Pod) -> resizing.Waiting | None:
        return self.resize_wait

    def container_resources(self, pod: Pod, container: Container) -> dict[str, Any]:
        return resizing.container_resources(pod, container, with_claims=True)

    def bounds(self, pod: Pod, container: Container) -> protocol.Bounds | None:
        return None

    def quality_notice(self, pod: Pod) -> str:
        return self.notice


class FakeMetrics:
    """Remembers what is counted."""

    def __init__(self) -> None:
        self.starts: list[str] = []
        self.start_errors: list[tuple[str, str]] = []

    def count_start(self, container_type: str) -> None:
        self.starts.append(container_type)

    def count_start_error(self, container_type: str, code: str) -> None:
        self.start_errors.append((container_type, code))


class FakeNode:
    """All services of a node on a manual clock."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.clock = ManualClock()
        self.runtime = FakeRuntime(self.calls, self.clock)
        self.api = FakeAPI(self.calls)
        self.claims = FakeClaims(self.calls)
        self.setups = FakeSetups(self.calls, self.clock)
        self.resources = FakeResources()
        self.metrics = FakeMetrics()
        self.services = services.PodServices(
            clock=self.clock,
            runtime=self.runtime,
            api=self.api,
            claims=self.claims,
            setups=self.setups,
            resources=self.resources,
            addresses=PodAddresses("127.1.0.1"),
            metrics=self.metrics,
        )


def conditions(status: Mapping[str, Any]) -> dict[str, str]:
    """Return the conditions of a status by type."""
    return {each["type"]: each["status"] for each in status["conditions"]}
