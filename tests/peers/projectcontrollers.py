"""Controllers of other projects, with the definitions and webhooks of their manifests, on a control plane."""

import asyncio
import base64
import contextlib
import pathlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import aiohttp
import pytest
import yaml

from drachma.server.access import certificates
from tests.peers import agents, programs
from tests.scenarios import nodecluster, processes
from tests.scenarios.nodecluster import NodeCluster


class Project(NamedTuple):
    """API version of a project's configuration, and the files of its definition and webhooks."""

    configuration: str
    definition: str
    webhooks: str


async def start(cluster: NodeCluster, name: str, project: Project) -> None:
    """Install the definition, start the controller, and have the API server call its webhooks."""
    manifests = programs.files_of(name)
    await cluster.apply((manifests / project.definition).read_text())
    folder, port, health = cluster.folder / "webhooks", agents.free_port(), agents.free_port()
    files = certificates.ensure(folder, hosts=["127.0.0.1"], now=datetime.now(UTC))
    (folder / "tls.crt").write_bytes(files.certificate.read_bytes())
    (folder / "tls.key").write_bytes(files.key.read_bytes())
    configuration = {
        "apiVersion": project.configuration,
        "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(folder)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
    file = cluster.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(configuration))
    await run(cluster, name, f"--config={file}", health=health)

    async def listening() -> bool:
        """Some controllers are ready before they listen for webhooks."""
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    await cluster.until(listening)
    authority = base64.b64encode(files.authority.read_bytes()).decode()
    for configured in yaml.safe_load_all((manifests / project.webhooks).read_text()):
        for each in configured["webhooks"]:
            path = each["clientConfig"]["service"]["path"]
            each["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority}
        await cluster.apply(yaml.safe_dump(configured))


async def run(
    cluster: NodeCluster, name: str, *options: str, health: int, environment: Mapping[str, str] | None = None
) -> None:
    """Start a controller and wait until it is ready, by its port for health checks."""
    controller = await cluster.talker(name, str(programs.built(name)), *options, environment=environment)

    async def ready() -> bool:
        assert controller.is_running, controller.story()
        async with aiohttp.ClientSession() as session:
            try:
                async with session.get(f"http://127.0.0.1:{health}/readyz") as answer:
                    return answer.status == 200
            except aiohttp.ClientConnectorError:
                return False

    await cluster.until(ready)


@contextlib.contextmanager
def queueing_server(name: str, configuration: str, folder: pathlib.Path) -> Iterator[processes.Process]:
    """Run a control plane with queueing and two nodes; skip the calling test if the controller is not built."""
    try:
        programs.built(name)
    except programs.MissingError as missing:
        pytest.skip(str(missing))
    file = folder / "queueing.yaml"
    file.write_text(configuration)
    with nodecluster.control_plane("--queueing", "--queueing-config", str(file), "--nodes", "2") as server:
        yield server
