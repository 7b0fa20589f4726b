"""A driver without hardware, as a process: ``python -m tests.scenarios.fakedriver``.

It takes the options, says the lines and obeys the words of the driver in tests/peers/go, so that tests can have either.
It can serve several nodes at once: ``{node}`` in the root stands for the name of each. A device that two claims have at
once is ``problem``.
"""

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import sys
from typing import Any

import grpc.aio

from drachma import errors
from drachma.api import resourceclaim, resourceslice
from drachma.client import http
from drachma.nodewire.rpc import messages, services
from drachma.runtime import clock


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - that is how it talks


class Behaviour:
    """How claims are answered at the moment."""

    def __init__(self) -> None:
        self.failure = ""
        self.hangs = False

    def obey(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        match word:
            case "fail":
                self.failure = rest
            case "hang":
                self.hangs = True
            case "ok":
                self.failure, self.hangs = "", False


class FakeDriver:
    """The driver of one node."""

    def __init__(self, options: argparse.Namespace, node: str, *, client: http.HttpClient, told: Behaviour) -> None:
        self._name: str = options.driver
        self._node = node
        self._client = client
        self._told = told
        self._devices: int = options.devices
        self._cdi = pathlib.Path(options.cdi)
        self._users: dict[str, str] = {}
        root = pathlib.Path(options.root.format(node=node))
        suffix = f"-{options.pod_uid}" if options.pod_uid else ""
        self._endpoint = root / "plugins" / self._name / f"dra{suffix}.sock"
        self._registration = root / "plugins_registry" / f"{self._name}{suffix}-reg.sock"

    async def start(self) -> list[grpc.aio.Server]:
        self._endpoint.parent.mkdir(parents=True, exist_ok=True)
        dra = {"NodePrepareResources": self._prepare, "NodeUnprepareResources": self._unprepare}
        registration = {"GetInfo": self._get_info, "NotifyRegistrationStatus": self._notify}
        await self._publish()
        return [
            await _serve(self._endpoint, services.DRA[0], dra),
            await _serve(self._registration, services.REGISTRATION, registration),
        ]

    async def _publish(self) -> None:
        devices = [{"name": f"dev-{number}"} for number in range(self._devices)]
        document = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{self._node}-{self._name}"},
            "spec": {
                "driver": self._name,
                "nodeName": self._node,
                "pool": {"name": self._node, "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
            },
        }
        with contextlib.suppress(errors.ObjectExistsError):
            await self._client.create_document(resourceslice.ResourceSlice, document)

    async def _get_info(self, _request: Any, _context: Any) -> Any:
        return messages.REGISTRATION.PluginInfo(
            type="DRAPlugin",
            name=self._name,
            endpoint=str(self._endpoint),
            supported_versions=[services.DRA[0].advertised],
        )

    async def _notify(self, request: Any, _context: Any) -> Any:
        if request.plugin_registered:
            # Who registers drivers anew has removed their slices.
            await self._publish()
            say("registered")
        else:
            say(f"problem {request.error}")
        return messages.REGISTRATION.RegistrationStatusResponse()

    async def _prepare(self, request: Any, _context: Any) -> Any:
        answer = messages.DRA.NodePrepareResourcesResponse()
        for claim in request.claims:
            await self._prepare_one(claim, answer.claims[claim.uid])
        if self._told.hangs:
            await asyncio.Event().wait()
        return answer

    async def _prepare_one(self, asked: Any, answer: Any) -> None:
        claim = await self._client.get(resourceclaim.ResourceClaim, asked.name, namespace=asked.namespace)
        assert claim.status.allocation is not None, "what is prepared is allocated"
        results = [each for each in claim.status.allocation.devices.results if each.driver == self._name]
        say(f"prepare {asked.namespace}/{asked.name} {','.join(each.device for each in results)}")
        if self._told.failure:
            answer.error = self._told.failure
            return
        entries = []
        for number, each in enumerate(results):
            user = self._users.setdefault(each.device, asked.uid)
            if user != asked.uid:
                say(f"problem {each.device} is in use for two claims")
            entry = f"{asked.uid}-{number}"
            entries.append({"name": entry, "containerEdits": {"env": [f"DEVICE_{number}={each.device}"]}})
            answer.devices.add(
                request_names=[each.request.partition("/")[0]],
                pool_name=each.pool,
                device_name=each.device,
                cdi_device_ids=[f"{self._name}/device={entry}"],
            )
        content = {"cdiVersion": "0.5.0", "kind": f"{self._name}/device", "devices": entries}
        self._file(asked.uid).write_text(json.dumps(content))

    async def _unprepare(self, request: Any, _context: Any) -> Any:
        answer = messages.DRA.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            say(f"unprepare {claim.namespace}/{claim.name}")
            self._users = {device: user for device, user in self._users.items() if user != claim.uid}
            self._file(claim.uid).unlink(missing_ok=True)
            answer.claims[claim.uid].error = ""
        return answer

    def _file(self, uid: str) -> pathlib.Path:
        return self._cdi / f"{self._name}-{uid}.json"


async def _serve(path: pathlib.Path, service: services.Service, handlers: dict[str, Any]) -> grpc.aio.Server:
    path.unlink(missing_ok=True)
    server = grpc.aio.server()
    services.serve(server, service, handlers)
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    return server


async def _run(options: argparse.Namespace) -> None:
    access = http.find_access(pathlib.Path(os.environ["KUBECONFIG"]))
    told = Behaviour()
    async with http.HttpClient(access, clock=clock.SystemClock(), manager=options.driver) as client:
        servers = []
        for node in options.node:
            servers += await FakeDriver(options, node, client=client, told=told).start()
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            told.obey(line.decode())
        for server in reversed(servers):
            await server.stop(grace=None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-driver", required=True)
    parser.add_argument("-node", action="append", required=True)
    parser.add_argument("-root", required=True)
    parser.add_argument("-cdi", required=True)
    parser.add_argument("-devices", type=int, default=4)
    parser.add_argument("-pod-uid", default="")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
