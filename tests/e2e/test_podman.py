"""Real containers by podman: a device of a CDI spec, streams, volumes, and an end in time."""

import json
import os
import pathlib
import uuid
from collections.abc import Iterator

import msgspec
import pytest

from drachma.api import meta, pod
from drachma.node.cgroups import Cgroup
from drachma.node.logs import selection
from drachma.node.runtimes import podman, protocol
from drachma.runtime import clock
from tests.e2e import podmanimage
from tests.e2e.conftest import Kubectl
from tests.scenarios import processes

pytestmark = [
    pytest.mark.skipif(bool(podmanimage.missing()), reason=podmanimage.missing()),
    pytest.mark.skipif(os.geteuid() != 0, reason="podman is tried as root"),
]

CDI = pathlib.Path("/var/run/cdi")


@pytest.fixture(scope="module")
def image() -> str:
    return podmanimage.load()


@pytest.fixture
def device() -> Iterator[str]:
    """A device whose file in containers is a copy of /dev/zero."""
    kind = f"drachma-{uuid.uuid4().hex[:8]}.example.com/gpu"
    edits = {"env": ["GPU=7"], "deviceNodes": [{"path": "/dev/gpu7", "hostPath": "/dev/zero"}]}
    spec = {"cdiVersion": "0.5.0", "kind": kind, "devices": [{"name": "seven", "containerEdits": edits}]}
    CDI.mkdir(parents=True, exist_ok=True)
    file = CDI / f"{kind.replace('/', '-')}.json"
    file.write_text(json.dumps(spec))
    try:
        yield f"{kind}=seven"
    finally:
        file.unlink()


def _work(image: str, *command: str, devices: tuple[str, ...] = (), **setup: object) -> protocol.Work:
    return protocol.Work(
        pod=pod.Pod(metadata=meta.ObjectMeta(name="p", namespace="default", uid=uuid.uuid4().hex)),
        container=pod.Container(name="c", image=image),
        devices=devices,
        setup=protocol.Setup(command=command, **setup),  # type: ignore[arg-type]
    )


async def _written(container: protocol.Container) -> str:
    pieces = [piece async for piece in selection.output(container.log, selection.Selection(follow=True))]
    return b"".join(pieces).decode()


async def test_a_container_sees_the_device_of_a_spec(image: str, device: str, tmp_path: pathlib.Path) -> None:
    runtime = podman.PodmanRuntime(tmp_path, time=clock.SystemClock())
    script = "echo $GPU; ls -l /dev/gpu7; exit 3"
    container = await runtime.start(_work(image, "sh", "-c", script, devices=(device,)))
    assert await container.wait() == protocol.Exit(3)
    lines = (await _written(container)).splitlines()
    assert lines[0] == "7"
    assert lines[1].startswith("c")
    assert "1, " in lines[1]


async def test_a_container_is_bounded(image: str, tmp_path: pathlib.Path) -> None:
    own = Cgroup(cpu_shares=512, cpu_quota=50_000, cpu_period=100_000, memory=2**28)
    bounds = protocol.Bounds(quality="Burstable", pod=own, container=own, oom_score=500)
    script = "cat /proc/self/oom_score_adj /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; true"
    runtime = podman.PodmanRuntime(tmp_path, time=clock.SystemClock())
    container = await runtime.start(msgspec.structs.replace(_work(image, "sh", "-c", script), bounds=bounds))
    assert await container.wait() == protocol.Exit(0)
    # Of the two files a machine has that of its generation of cgroups.
    numbers = [line for line in (await _written(container)).splitlines() if line.isdigit()]
    assert numbers == ["500", str(2**28)]


async def test_a_device_that_nobody_knows(image: str, tmp_path: pathlib.Path) -> None:
    runtime = podman.PodmanRuntime(tmp_path, time=clock.SystemClock())
    with pytest.raises(protocol.StartError, match="unresolvable CDI devices nobody"):
        await runtime.start(_work(image, "true", devices=("nobody.example.com/gpu=one",)))


async def test_what_an_agent_left_is_removed_by_the_next(image: str, tmp_path: pathlib.Path) -> None:
    first = podman.PodmanRuntime(tmp_path, time=clock.SystemClock())
    container = await first.start(_work(image, "sleep", "600"))
    following = await podman.PodmanRuntime(tmp_path, time=clock.SystemClock()).start(_work(image, "sh", "-c", "exit 0"))
    assert (await container.wait()).code != 0
    assert await following.wait() == protocol.Exit(0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    """A control plane with a machine whose containers are podman's."""
    folder = tmp_path_factory.mktemp("podman") / "data"
    with processes.running(folder, command_name="up", options=("--nodes", "1", "--runtime", "podman")) as started:
        yield started


@pytest.fixture(scope="module")
def environment(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(server.kubeconfig), "TZ": "UTC"}


def test_a_pod_of_real_containers(kubectl: Kubectl, image: str) -> None:
    kubectl("create", "configmap", "settings", "--from-literal=greeting=hello")
    container = {
        "name": "c",
        "image": image,
        "command": ["sh", "-c", "echo began; exec sleep 600"],
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}],
        "readinessProbe": {"exec": {"command": ["cat", "/etc/settings/greeting"]}, "periodSeconds": 1},
    }
    spec = {
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "settings", "configMap": {"name": "settings"}}],
    }
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "real"}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(made))
    kubectl("wait", "pod/real", "--for=condition=Ready", "--timeout=90s")
    assert kubectl("logs", "real") == "began\n"
    assert kubectl("exec", "real", "--", "cat", "/etc/settings/greeting") == "hello"
    assert kubectl("exec", "-i", "real", "--", "cat", stdin="word\n") == "word\n"
    kubectl("delete", "pod", "real", "--timeout=60s")
