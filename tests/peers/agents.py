"""Who runs the pods of a node: drachma's own agent, or a real kubelet with a runtime that records."""

import pathlib
import socket
import subprocess
from typing import Any, Protocol

import yaml

from tests.peers import programs
from tests.scenarios.nodecluster import NodeCluster, Talker

BOOTSTRAP = "bootstrap.yaml"


class Agent(Protocol):
    """The agent of one node, as a process that can be killed and started again."""

    name: str

    async def start(self) -> None:
        """Starts it, and waits until its node is ready."""

    async def kill(self) -> None:
        """Ends it as kill -9 does."""

    async def devices(self, pod: str) -> list[str]:
        """The CDI ids that the runtime was told for the container of a pod that runs."""


class DrachmaAgent:
    """``drachma node``."""

    def __init__(self, cluster: NodeCluster, name: str) -> None:
        self.name = name
        self._cluster = cluster
        self._process: Talker | None = None

    async def start(self) -> None:
        self._process = await self._cluster.agent(self.name)

    async def kill(self) -> None:
        assert self._process is not None, "it was started"
        await self._process.kill()

    async def devices(self, pod: str) -> list[str]:
        status = await self._cluster.pod_is(pod, "Running")
        (container,) = status["containerStatuses"]
        return [
            resource["resourceID"] for each in container["allocatedResourcesStatus"] for resource in each["resources"]
        ]


class Kubelet:
    """The kubelet of Kubernetes 1.37, which comes in by a bootstrap token."""

    def __init__(self, cluster: NodeCluster, name: str) -> None:
        self.name = name
        self._cluster = cluster
        self._program = programs.build("kubelet")
        self._socket = cluster.folder / f"{name}.sock"
        self._process: Talker | None = None
        self._runtime: Talker | None = None
        cluster.at_end(lambda: _unmount(cluster.root(name)))

    async def start(self) -> None:
        cluster, folder = self._cluster, self._cluster.folder
        if self._runtime is None:
            self._runtime = await cluster.talker(
                f"runtime-{self.name}", str(programs.build("runtime")), str(self._socket)
            )
            await self._runtime.says("listening")
        configuration = folder / f"{self.name}-kubelet.yaml"
        configuration.write_text(yaml.safe_dump(self._configuration(folder)))
        self._process = await cluster.talker(
            f"kubelet-{self.name}",
            str(self._program),
            f"--config={configuration}",
            f"--bootstrap-kubeconfig={folder / BOOTSTRAP}",
            f"--kubeconfig={folder / self.name}.kubeconfig",
            f"--root-dir={cluster.root(self.name)}",
            f"--cert-dir={folder / self.name}-certificates",
            f"--hostname-override={self.name}",
        )
        await cluster.node_is_ready(self.name)

    async def kill(self) -> None:
        assert self._process is not None, "it was started"
        await self._process.kill()

    async def devices(self, pod: str) -> list[str]:
        assert self._runtime is not None, "it was started"
        line = await self._runtime.says(f"create default/{pod} main ")
        return line.split(" ")[-1].split(",")

    def _configuration(self, folder: pathlib.Path) -> dict[str, Any]:
        """For a machine whose cgroups, swap and firewall are none of a test's business."""
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            # It tells the API server an address of the machine: its own loopback is refused as that of a node.
            "address": "0.0.0.0",
            "port": free_port(),
            "healthzPort": 0,
            "readOnlyPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self._cluster.server.authority)},
            },
            "authorization": {"mode": "Webhook"},
            "rotateCertificates": True,
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failCgroupV1": False,
            "failSwapOn": False,
            "localStorageCapacityIsolation": False,
            "makeIPTablesUtilChains": False,
            "oomScoreAdj": 0,
            "podLogsDir": str(folder / f"{self.name}-logs"),
            "resolvConf": "",
            "syncFrequency": "5s",
            "volumePluginDir": str(folder / f"{self.name}-volumes"),
        }


def free_port() -> int:
    """A port of the loopback address that nobody listens at."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
        return port


def _unmount(root: pathlib.Path) -> None:
    """Takes back what a kubelet mounted below its directory, and the directory itself, which would be left for ever."""
    points = [line.split(" ")[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in sorted((each for each in points if pathlib.Path(each).is_relative_to(root)), reverse=True):
        subprocess.run(["umount", point], check=True)
