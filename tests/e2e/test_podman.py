"""Real containers by podman: a device of a CDI spec, streams, volumes, and an end in time."""

import asyncio
import json
import os
import pathlib
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from drachma.api import meta, pod
from drachma.node.logs import selection
from drachma.node.podview.security import Profile
from drachma.node.runtimes import podman, protocol
from drachma.node.runtimes.protocol import Cgroup
from drachma.node.runtimes.security import Security
from drachma.nodewire.cdi import registry
from drachma.runtime import clock
from tests import patience
from tests.e2e import nodeprocess, podmanimage
from tests.e2e.conftest import Kubectl, eventually
from tests.scenarios import processes

pytestmark = [
    pytest.mark.skipif(bool(podmanimage.missing()), reason=podmanimage.missing()),
    pytest.mark.skipif(os.geteuid() != 0, reason="podman is tried as root"),
]


@pytest.fixture(scope="module")
def image() -> str:
    return podmanimage.load()


@pytest.fixture(params=["directory-of-podman", "another-directory"])
def cdi(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory of CDI files."""
    return registry.DIRECTORIES[-1] if request.param == "directory-of-podman" else tmp_path / "cdi"


@pytest.fixture
def device(cdi: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[str]:
    """A device whose file in containers is a copy of /dev/zero, with a library."""
    kind = f"drachma-{uuid.uuid4().hex[:8]}.example.com/gpu"
    library = tmp_path / "library"
    library.write_text("version 7\n")
    edits = {
        "env": ["GPU=7"],
        "deviceNodes": [{"path": "/dev/gpu7", "hostPath": "/dev/zero"}],
        "mounts": [{"hostPath": str(library), "containerPath": "/usr/lib/gpu", "options": ["ro", "bind"]}],
    }
    spec = {"cdiVersion": "0.5.0", "kind": kind, "devices": [{"name": "seven", "containerEdits": edits}]}
    cdi.mkdir(parents=True, exist_ok=True)
    file = cdi / f"{kind.replace('/', '-')}.json"
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


@pytest.fixture
async def runtime(tmp_path: pathlib.Path) -> AsyncIterator[podman.PodmanRuntime]:
    """A runtime of which nothing is left in the end."""
    yield podman.PodmanRuntime(tmp_path, clock=clock.SystemClock())
    await podman.PodmanRuntime(tmp_path, clock=clock.SystemClock()).retain(frozenset())


async def test_a_container_sees_the_device_of_a_spec(
    image: str, device: str, cdi: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    runtime = podman.PodmanRuntime(tmp_path, clock=clock.SystemClock(), cdi=(cdi,))
    work = _work(image, "sh", "-c", "echo $GPU; cat /usr/lib/gpu; ls -l /dev/gpu7; exit 3", devices=(device,))
    container = await runtime.start(work)
    assert await container.wait() == protocol.Exit(3)
    number, library, file = (await _written(container)).splitlines()
    assert (number, library) == ("7", "version 7")
    assert file.startswith("c")
    assert "1, " in file
    runtime.forget(work.pod.metadata.uid)
    await runtime.close()


async def test_a_container_is_bounded(image: str, runtime: podman.PodmanRuntime) -> None:
    own = Cgroup(cpu_shares=512, cpu_quota=50_000, cpu_period=100_000, memory=2**28)
    bounds = protocol.Bounds(quality="Burstable", pod=own, container=own, oom_score=500)
    script = "cat /proc/self/oom_score_adj /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; true"
    container = await runtime.start(msgspec.structs.replace(_work(image, "sh", "-c", script), bounds=bounds))
    assert await container.wait() == protocol.Exit(0)
    # Of the two files a machine has that of its generation of cgroups.
    numbers = [line for line in (await _written(container)).splitlines() if line.isdigit()]
    assert numbers == ["500", str(2**28)]


async def test_a_device_that_nobody_knows(image: str, runtime: podman.PodmanRuntime) -> None:
    with pytest.raises(protocol.StartError, match="unresolvable CDI devices nobody"):
        await runtime.start(_work(image, "true", devices=("nobody.example.com/gpu=one",)))


async def test_a_command_that_is_not_there(image: str, runtime: podman.PodmanRuntime) -> None:
    work = _work(image, "nonsense")
    for _ in range(2):
        with pytest.raises(protocol.StartError, match="nonsense") as refusal:
            await runtime.start(work)
        assert refusal.value.reason == "RunContainerError"


READER = "echo began; read word; echo got $word; exec sleep 600"


async def _said_after(container: protocol.Container, data: bytes) -> bytes:
    """What a container that has begun to speak says next, when somebody attaches and types."""
    async with asyncio.timeout(patience.SECONDS):
        async for _ in selection.output(container.log, selection.Selection(follow=True)):
            break
    session = await container.attach()
    try:
        async with asyncio.timeout(patience.SECONDS):
            await session.feed(data)
            async for _, said in session.output():
                return said
    finally:
        await session.close()
    raise AssertionError("it said nothing")


async def test_what_an_agent_left_is_taken_over_by_the_next(
    image: str, runtime: podman.PodmanRuntime, tmp_path: pathlib.Path
) -> None:
    works = [_work(image, "sh", "-c", script, has_input=True) for script in (READER, "exit 5", "exec sleep 600")]
    lasting, ended, orphan = [await runtime.start(work) for work in works]
    assert (await ended.wait()).code == 5

    following = podman.PodmanRuntime(tmp_path, clock=clock.SystemClock())
    await following.retain({work.pod.metadata.uid for work in works[:2]})
    assert (await orphan.wait()).code != 0
    # An agent that knows of a container recalls it; one whose last word on it was not written starts it again.
    now = clock.SystemClock().utc()
    recalled = await following.recall(works[1], ended.id, since=now)
    assert recalled is not None
    assert await recalled.wait() == protocol.Exit(5)
    adopted = await following.start(works[0])
    assert adopted.id == lasting.id
    assert await following.recall(works[2], orphan.id, since=now) is None

    assert await _said_after(adopted, b"word\n") == b"got word\n"
    session = await adopted.execute(protocol.Command(words=("sh", "-c", "exit 7")))
    assert (await session.wait()).code == 7
    await adopted.stop(0)
    assert await _written(adopted) == "began\ngot word\n"
    assert await lasting.wait() == await adopted.wait()


IDENTITY = "id -u; id -g; id -G; cat /proc/self/status; echo x > /file"
NO_CAPABILITIES = "CapBnd:\t0000000000000000"


async def test_security_contexts_are_enforced(image: str, runtime: podman.PodmanRuntime) -> None:
    security = Security(
        user=1234,
        group=7,
        groups=(8, 9),
        is_non_root=True,
        has_read_only_root=True,
        forbids_escalation=True,
        drop=("ALL",),
    )
    container = await runtime.start(_work(image, "sh", "-c", IDENTITY, security=security))
    assert (await container.wait()).code != 0
    shown = (await _written(container)).splitlines()
    assert shown[:3] == ["1234", "7", "7 8 9"]
    assert {NO_CAPABILITIES, "NoNewPrivs:\t1", "Seccomp:\t2"} <= set(shown)
    assert "Read-only file system" in shown[-1]


async def test_what_a_container_is_given_beyond_the_usual(image: str, runtime: podman.PodmanRuntime) -> None:
    script = "cat /proc/1/comm; cat /proc/self/status"
    security = Security(add=("NET_ADMIN",), seccomp=Profile(type="Unconfined"), has_host_pid=True)
    container = await runtime.start(_work(image, "sh", "-c", script, security=security))
    assert (await container.wait()).code == 0
    own, *status = (await _written(container)).splitlines()
    assert own == pathlib.Path("/proc/1/comm").read_text().strip()
    capabilities = next(line for line in status if line.startswith("CapEff"))
    assert int(capabilities.split()[1], 16) & 1 << 12
    assert "Seccomp:\t0" in status


async def test_an_image_of_root_does_not_run_where_root_may_not(image: str, runtime: podman.PodmanRuntime) -> None:
    with pytest.raises(protocol.StartError, match="container has runAsNonRoot and image will run as root") as refused:
        await runtime.start(_work(image, "true", security=Security(is_non_root=True)))
    assert refused.value.reason == "CreateContainerConfigError"


@pytest.mark.parametrize("name", ["--help", "--privileged", "--volume=/:/host"])
async def test_an_image_is_not_read_as_an_option(runtime: podman.PodmanRuntime, name: str) -> None:
    with pytest.raises(protocol.StartError) as refused:
        await runtime.start(_work(name, "true"))
    assert refused.value.reason == "ErrImagePull"


async def test_a_path_is_not_read_as_options(image: str, runtime: podman.PodmanRuntime, tmp_path: pathlib.Path) -> None:
    mount = protocol.Mount(str(tmp_path), "/x:exec,suid,dev")
    with pytest.raises(protocol.StartError, match="mount path '/x:exec,suid,dev': must not contain ':'"):
        await runtime.start(_work(image, "true", mounts=(mount,)))
    mount = protocol.Mount(str(tmp_path), "/x,y=z", is_read_only=True, options=("noexec", "nosuid"))
    container = await runtime.start(_work(image, "sh", "-c", "cat /proc/mounts", mounts=(mount,)))
    assert (await container.wait()).code == 0
    (line,) = [line for line in (await _written(container)).splitlines() if " /x,y=z " in line]
    assert {"ro", "noexec", "nosuid"} <= set(line.split()[3].split(","))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    with nodeprocess.control_plane(tmp_path_factory.mktemp("podman")) as started:
        yield started


@pytest.fixture(scope="module")
def agent(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nodeprocess.Agent]:
    """The agent of a machine whose containers are podman's."""
    folder = tmp_path_factory.mktemp("node")
    try:
        with nodeprocess.agent(server, folder, runtime="podman") as started:
            yield started
    finally:
        podmanimage.remove_containers(below=folder)


@pytest.fixture(scope="module")
def environment(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(server.kubeconfig), "TZ": "UTC"}


SCRIPT = """
while ! test -e /tmp/hook; do sleep 0.1; done
echo began
while ! test -e /tmp/end; do sleep 0.1; done
echo ends
echo enough > /dev/termination-log
exit 3
"""

CONTAINER_ID = "jsonpath={.status.containerStatuses[0].containerID}"


def test_a_pod_of_real_containers_outlives_its_agent(kubectl: Kubectl, image: str, agent: nodeprocess.Agent) -> None:
    kubectl("create", "configmap", "settings", "--from-literal=greeting=hello")
    container = {
        "name": "c",
        "image": image,
        "command": ["sh", "-c", SCRIPT],
        "lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", "echo > /tmp/hook"]}}},
        "volumeMounts": [
            {"name": "settings", "mountPath": "/etc/settings"},
            {"name": "scratch", "mountPath": "/scratch", "subPath": "own/part"},
        ],
        "readinessProbe": {"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1},
    }
    spec = {
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "settings", "configMap": {"name": "settings"}}, {"name": "scratch", "emptyDir": {}}],
    }
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "real"}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(made))
    kubectl("wait", "pod/real", "--for=jsonpath={.status.containerStatuses[0].started}=true", "--timeout=90s")
    assert kubectl("exec", "real", "--", "cat", "/etc/settings/greeting") == "hello"
    assert kubectl("exec", "-i", "real", "--", "cat", stdin="word\n") == "word\n"
    kubectl("debug", "real", "--image", image, "--container", "helper", "--", "sh", "-c", "echo looking")
    helper = "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=0"
    kubectl("wait", "pod/real", f"--for={helper}", "--timeout=90s")
    assert kubectl("logs", "real", "--container", "helper") == "looking\n"
    first = kubectl("get", "pod", "real", "-o", CONTAINER_ID)

    agent.restart()
    # The next agent asks the probe, in the same container.
    command = ["podman", "exec", first.removeprefix("podman://"), "sh", "-c", "echo > /tmp/ready"]
    subprocess.run(command, check=True, timeout=60)
    kubectl("wait", "pod/real", "--for=condition=Ready", "--timeout=90s")
    assert kubectl("get", "pod", "real", "-o", CONTAINER_ID) == first
    assert kubectl("logs", "real") == "began\n"

    kubectl("exec", "real", "--", "sh", "-c", "echo > /tmp/end")
    kubectl("wait", "pod/real", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "--timeout=90s")
    last = "jsonpath={.status.containerStatuses[0].lastState.terminated['exitCode','message']}"
    assert kubectl("get", "pod", "real", "-o", last) == "3 enough\n"
    kubectl("wait", "pod/real", "--for=jsonpath={.status.containerStatuses[0].started}=true", "--timeout=90s")
    assert kubectl("logs", "real", "--previous") == "began\nends\n"
    assert kubectl("exec", "real", "--", "sh", "-c", "echo kept > /scratch/file; ls /scratch") == "file\n"
    assert f"{agent.root}/pods" not in pathlib.Path("/proc/self/mounts").read_text()
    kubectl("delete", "pod", "real", "--timeout=60s")
    patience.until(lambda: list((agent.root / "pods").iterdir()), lambda left: not left, what="the pod's files go")


def test_a_link_in_a_volume_does_not_lead_a_sub_path_to_the_host(
    kubectl: Kubectl, image: str, agent: nodeprocess.Agent, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "key").write_text("private")
    volume = [{"name": "shared", "mountPath": "/shared"}]
    spec = {
        "initContainers": [
            {
                "name": "plant",
                "image": image,
                "command": ["ln", "-s", str(tmp_path), "/shared/link"],
                "volumeMounts": volume,
            }
        ],
        "containers": [
            {
                "name": "thief",
                "image": image,
                "command": ["sh", "-c", "cat /stolen/key; exec sleep 600"],
                "volumeMounts": [{"name": "shared", "mountPath": "/stolen", "subPath": "link"}],
            }
        ],
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "shared", "emptyDir": {}}],
    }
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "escape"}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(made))
    state = "jsonpath={.status.containerStatuses[0].state.waiting['reason','message']}"
    want = 'CreateContainerConfigError failed to prepare subPath for volumeMount "shared" of container "thief"'
    eventually(kubectl, "get", "pod", "escape", "-o", state, want=want)
    kubectl("delete", "pod", "escape", "--timeout=60s")
