"""A node agent's part that is about claims, with drivers on real sockets whose answers a recording says."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import prometheus_client

from drachma import errors
from drachma.api import codec, resourceclaim
from drachma.api import gates as feature
from drachma.api import pod as pods
from drachma.node import agentmetrics
from drachma.node.claims import checkpoint, devicehealth, nodeclaims, preparation
from drachma.node.drivers import instances, plugins
from drachma.nodewire.rpc import services
from drachma.testing import manualclock

Line = dict[str, Any]
NODE = "worker"
REAL_SECONDS = 5.0
"""How long something may take that really happens, such as a connection that breaks."""


class Driver:
    """A driver's process: it answers as it was told and remembers what it was asked."""

    def __init__(self, name: str, title: str, endpoint: Path, calls: list[Line]) -> None:
        self.name = name
        self.endpoint = endpoint
        self.behaviour: Line = {}
        self.reports: asyncio.Queue[list[Line]] = asyncio.Queue()
        self._title = title
        self._calls = calls
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        if self._server is not None:
            return
        self._server = grpc.aio.server()
        for service in services.DRA:
            services.serve(
                self._server,
                service,
                {method.name: self._handler(service, method) for method in service.methods},
            )
        for service in services.HEALTH:
            services.serve(self._server, service, {"NodeWatchResources": self._watcher(service)})
        self._server.add_insecure_port(f"unix:{self.endpoint}")
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(grace=None)
            self._server = None
            self.endpoint.unlink(missing_ok=True)

    def _handler(self, service: services.Service, method: services.Method) -> services.Handler:
        act = "prepare" if method.name == "NodePrepareResources" else "unprepare"

        async def handle(request: Any, context: Any) -> Any:
            claims = [f"{claim.namespace}/{claim.name}/{claim.uid}" for claim in request.claims]
            claims = claims if act == "prepare" else sorted(claims)
            self._calls.append({"driver": self._title, "method": service.path(method.name), "claims": claims})
            behaviour = self.behaviour
            if behaviour.get("hangs"):
                await asyncio.Event().wait()
            if fails := behaviour.get(f"{act}Fails"):
                await context.abort(grpc.StatusCode[fails["code"]], fails["message"])
            response = method.response()
            for claim in request.claims:
                if claim.name in behaviour.get(f"{act}Omits", ()):
                    continue
                response.claims[claim.uid].Clear()
                response.claims[claim.uid].error = behaviour.get(f"{act}Errors", {}).get(claim.name, "")
                if act == "prepare" and not response.claims[claim.uid].error:
                    for device in behaviour.get("devices", {}).get(claim.name, ()):
                        response.claims[claim.uid].devices.add(**_fields(device, service))
            for uid in behaviour.get(f"{act}Extra", ()):
                response.claims[uid].error = ""
            return response

        return handle

    def _watcher(self, service: services.Service) -> services.Handler:
        (method,) = service.methods

        async def watch(request: Any, context: Any) -> Any:
            while True:
                reports = await self.reports.get()
                response = method.response()
                for report in reports:
                    response.devices.add(
                        device={"pool_name": report["pool"], "device_name": report["device"]},
                        health=report["health"],
                        message=report.get("message", ""),
                        health_check_timeout_seconds=report.get("timeoutSeconds", 0),
                    )
                yield response

        return watch


def _fields(device: Line, service: services.Service) -> Line:
    fields = {
        "pool_name": device.get("poolName", ""),
        "device_name": device.get("deviceName", ""),
        "request_names": device.get("requestNames") or [],
        "cdi_device_ids": device.get("cdiDeviceIDs") or [],
    }
    if device.get("shareID") is not None and service is services.DRA[0]:
        fields["share_id"] = device["shareID"]
    return fields


class Agent:
    """The agent's part under test, in a directory of its own."""

    def __init__(self, directory: Path, gates: Mapping[str, bool]) -> None:
        self.directory = directory
        self.clock = manualclock.ManualClock()
        self.calls: list[Line] = []
        self.slice_calls: list[Line] = []
        self.updated: set[str] = set()
        self._gates = feature.ALL.switched({name: on for name, on in gates.items() if not name.startswith("_")})
        self._claims: dict[str, resourceclaim.ResourceClaim] = {}
        self._api_errors: dict[str, str] = {}
        self._processes: dict[tuple[str, str], Driver] = {}
        self.registry = prometheus_client.CollectorRegistry()

    async def start(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        metrics = agentmetrics.AgentMetrics(self.registry).node_metrics("worker")
        self.health = devicehealth.DeviceHealth(self.clock)
        self._heard: asyncio.Queue[tuple[str, set[devicehealth.DeviceID]]] = asyncio.Queue()
        self._watch = plugins.HealthWatch(
            self.health, on_health=lambda *heard: self._heard.put_nowait(heard), clock=self.clock
        )
        self.drivers = instances.DriverInstances(
            metrics=metrics,
            clock=self.clock,
            on_gone=self._remove_slices,
            on_join=self._watch.join,
            on_leave=self._watch.leave,
        )
        self.preparation = preparation.Preparation(
            get_claim=self._get,
            find_driver=self.drivers.get,
            store=checkpoint.Checkpoint(self.directory),
            metrics=metrics,
            clock=self.clock,
            gates=self._gates,
        )
        await self._remove_slices()

    async def stop(self) -> None:
        await self._watch.close()
        await self.drivers.close()

    async def close(self) -> None:
        await self.stop()
        for process in self._processes.values():
            await process.stop()

    async def _get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim:
        if name in self._api_errors:
            raise errors.UnreachableError(self._api_errors[name])
        if name not in self._claims:
            message = f'resourceclaims.resource.k8s.io "{name}" not found'
            raise errors.ObjectNotFoundError({"message": message, "code": 404})
        return self._claims[name]

    async def _remove_slices(self, driver: str = "") -> None:
        async def delete(selector: str) -> None:
            self.slice_calls.append({"verb": "delete-collection", "fieldSelector": selector})

        await plugins.remove_slices(delete, node_name=NODE, driver=driver, clock=self.clock)

    def process(self, step: Line) -> Driver:
        name, instance = step["driver"], step.get("instance", "")
        key = (name, instance)
        if key not in self._processes:
            endpoint = self.directory / f"p{len(self._processes)}.sock"
            self._processes[key] = Driver(name, f"{name}/{instance}" if instance else name, endpoint, self.calls)
        return self._processes[key]

    # Steps

    async def do(self, step: Line) -> Line | None:
        """Return the result of a step, or None for a step that only prepares others."""
        done: Line | None = await getattr(self, f"_{step['do']}")(step)
        return done

    async def _register(self, step: Line) -> Line:
        process = self.process(step)
        await process.start()
        advertised = [each for each in step.get("services", ["v1.DRAPlugin"]) if each != "none"]
        try:
            self.drivers.validate(process.name, str(process.endpoint), advertised)
        except errors.NodeError as error:
            return {"validateError": str(error)}
        seconds = {"timeout": _seconds(step["timeout"])} if "timeout" in step else {}
        try:
            instance = self.drivers.register(
                process.name,
                str(process.endpoint),
                advertised,
                call_seconds=seconds.get("timeout", instances.CALL_SECONDS),
            )
        except errors.NodeError as error:
            return {"validateError": None, "error": str(error)}
        await _until(lambda: instance.is_connected)
        return {"validateError": None, "error": None}

    async def _deregister(self, step: Line) -> None:
        process = self.process(step)
        await self.drivers.deregister(process.name, str(process.endpoint))

    async def _stopDriver(self, step: Line) -> None:  # noqa: N802 - the recordings' name
        process = self.process(step)
        instances = self.drivers.instances(process.name)
        await process.stop()
        (instance,) = [each for each in instances if each.endpoint == str(process.endpoint)]
        await _until(lambda: not instance.is_connected)

    async def _answer(self, step: Line) -> None:
        self.process(step).behaviour = step

    async def _claim(self, step: Line) -> None:
        document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **step["claim"]}
        claim = codec.decode(document)
        assert isinstance(claim, resourceclaim.ResourceClaim)
        self._claims[claim.metadata.name] = claim

    async def _deleteClaim(self, step: Line) -> None:  # noqa: N802 - the recordings' name
        del self._claims[step["name"]]

    async def _apiError(self, step: Line) -> None:  # noqa: N802 - the recordings' name
        self._api_errors[step["name"]] = step["error"]

    async def _prepare(self, step: Line) -> Line:
        return await self._called(self.preparation.prepare(_pod(step)))

    async def _unprepare(self, step: Line) -> Line:
        return await self._called(self.preparation.unprepare(_pod(step)))

    async def _reconcile(self, step: Line) -> Line:
        outcome = await self._called(self.preparation.unprepare_leftovers(step.get("activePods") or ()))
        return {"calls": outcome["calls"]}

    async def _called(self, work: Any) -> Line:
        self.calls.clear()
        problem = None
        try:
            await work
        except errors.NodeError as error:
            problem = str(error)
        return {"calls": sorted(self.calls, key=lambda call: call["driver"]), "error": problem}

    async def _containers(self, step: Line) -> Line:
        pod = _pod(step)
        return {"containers": {each.name: self._devices(pod, each) for each in _containers(pod)}}

    async def _sortedContainers(self, step: Line) -> Line:  # noqa: N802 - the recordings' name
        pod = _pod(step)
        devices = {each.name: self._devices(pod, each) for each in _containers(pod)}
        return {"containers": {name: {"cdiDevices": sorted(each["cdiDevices"])} for name, each in devices.items()}}

    def _devices(self, pod: pods.Pod, container: pods.Container) -> Line:
        try:
            return {"cdiDevices": nodeclaims.cdi_devices(self.preparation.claims, pod, container)}
        except errors.NodeError as error:
            return {"error": str(error)}

    async def _podResources(self, step: Line) -> Line:  # noqa: N802 - the recordings' name
        pod = _pod(step)
        return {"containers": {each.name: self._claims_of(pod, each) for each in pod.spec.containers}}

    def _claims_of(self, pod: pods.Pod, container: pods.Container) -> Line:
        try:
            records = nodeclaims.container_claims(self.preparation.claims, pod, container)
        except errors.NodeError as error:
            return {"error": str(error)}
        return {
            "claims": [
                {
                    "claim": f"{record.key.namespace}/{record.key.name}",
                    "uid": record.uid,
                    "drivers": {name: checkpoint.state_entry(state) for name, state in record.drivers.items()},
                }
                for record in records
            ]
        }

    async def _mightNeedUnprepare(self, step: Line) -> Line:  # noqa: N802 - the recordings' name
        return {"result": bool(self.preparation.claims.used_by(step["uid"]))}

    async def _restart(self, step: Line) -> Line:
        await self.stop()
        await self.start()
        return {"error": None}

    async def _writeCheckpoint(self, step: Line) -> None:  # noqa: N802 - the recordings' name
        (self.directory / checkpoint.NAME).write_text(step.get("text", ""))

    async def _removeCheckpoint(self, step: Line) -> None:  # noqa: N802 - the recordings' name
        (self.directory / checkpoint.NAME).unlink()

    async def _sliceCalls(self, step: Line) -> Line:  # noqa: N802 - the recordings' name
        calls = list(self.slice_calls)
        self.slice_calls.clear()
        return {"calls": calls}

    async def _health(self, step: Line) -> Line:
        process = self.process(step)
        process.reports.put_nowait(step["health"])
        async with asyncio.timeout(REAL_SECONDS):
            driver, changed = await self._heard.get()
        return {"podsUpdated": sorted(devicehealth.affected_pods(self.preparation.claims, driver, changed))}

    async def _podStatus(self, step: Line) -> Line:  # noqa: N802 - the recordings' name
        pod = _pod(step)
        statuses = {
            each.name: devicehealth.statuses(self.preparation.claims, self.health, pod, each)
            for each in pod.spec.containers
        }
        ordered = {name: sorted(each, key=lambda entry: str(entry["name"])) for name, each in statuses.items() if each}
        return {"allocatedResourcesStatus": ordered}

    async def _metrics(self, step: Line) -> Line:
        counts: Line = {}
        in_use: Line = {}
        for family in self.registry.collect():
            for sample in family.samples:
                if sample.name == "dra_resource_claims_in_use":
                    in_use[sample.labels["driver_name"]] = sample.value
                elif sample.name.endswith(("_count", "_total")):
                    labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
                    counts[f"{sample.name.removesuffix('_count')}{{{labels}}}"] = sample.value
        return {"counts": counts, "dra_resource_claims_in_use": in_use}

    async def _wait(self, step: Line) -> None:
        # Recordings shortened the 30 s after which a driver is gone to 0.2 s; here nothing is waited for anyway.
        is_fast = _seconds(step["wait"]) < 1
        await self.clock.advance(instances.GONE_SECONDS + 1 if is_fast else _seconds(step["wait"]))


def _pod(step: Line) -> pods.Pod:
    decoded = codec.decode({"apiVersion": "v1", "kind": "Pod", **step["pod"]})
    assert isinstance(decoded, pods.Pod)
    return decoded


def _containers(pod: pods.Pod) -> tuple[pods.Container, ...]:
    return (*pod.spec.init_containers, *pod.spec.containers)


def _seconds(text: str) -> float:
    return float(text.removesuffix("ms")) / 1000 if text.endswith("ms") else float(text.removesuffix("s"))


async def _until(holds: Any) -> None:
    """Waits for something that really happens."""
    async with asyncio.timeout(REAL_SECONDS):
        while not holds():
            await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def running(directory: Path, gates: Mapping[str, bool]) -> Any:
    agent = Agent(directory, gates)
    await agent.start()
    try:
        yield agent
    finally:
        await agent.close()
