"""kubectl with containers that are processes: logs, commands, copies, ports, and an end within the grace period."""

import json
import os
import pathlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

from drachma.node.runtimes import process
from tests import ports
from tests.e2e.conftest import Kubectl, eventually
from tests.scenarios import processes

TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev}}]}}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    """A control plane with two machines whose containers are processes."""
    folder = tmp_path_factory.mktemp("streams") / "data"
    with processes.running(folder, command_name="up", options=("--nodes", "2", "--runtime", "process")) as started:
        yield started
        # Asked to end, it ends its containers too; killed, it could not.
        started.stop()


@pytest.fixture(scope="module")
def environment(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(server.kubeconfig), "TZ": "UTC"}


def _run(kubectl: Kubectl, name: str, script: str, **spec: object) -> None:
    """A pod that runs a script, once it runs."""
    container = {"name": "c", "image": "none", "command": ["sh", "-c", script], **_of_container(spec)}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"automountServiceAccountToken": False, "containers": [container], **spec},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    eventually(kubectl, "get", "pod", name, "-o", "jsonpath={.status.phase}", want="Running|Succeeded|Failed")


_OF_CONTAINER = (
    "stdin",
    "tty",
    "resources",
    "readinessProbe",
    "livenessProbe",
    "lifecycle",
    "terminationMessagePolicy",
    "securityContext",
    "volumeMounts",
)


def _of_container(spec: dict[str, object]) -> dict[str, object]:
    return {name: spec.pop(name) for name in _OF_CONTAINER if name in spec}


def test_a_log_shows_the_device(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=TEMPLATE)
    _run(
        kubectl,
        "train",
        "env | grep SIMULATED; sleep 600",
        resources={"claims": [{"name": "gpu"}]},
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        terminationGracePeriodSeconds=1,
    )
    shown = eventually(kubectl, "logs", "train", want="SIMULATED")
    assert shown.startswith("SIMULATED_DEVICE_GPU_")


def test_logs_in_part_and_of_the_run_before(kubectl: Kubectl, tmp_path: pathlib.Path) -> None:
    sign = tmp_path / "sign"
    script = f"for n in 1 2 3; do echo line $n; done; while ! rm {sign} 2>/dev/null; do sleep 0.1; done; exit 1"
    _run(kubectl, "crash", script)
    eventually(kubectl, "logs", "crash", want="line 3")
    assert kubectl("logs", "crash", "--tail=1") == "line 3\n"
    assert kubectl("logs", "crash", "--limit-bytes=4") == "line"
    assert kubectl("logs", "crash", "--tail=1", "--timestamps").endswith("Z line 3\n")
    sign.touch()
    eventually(kubectl, "get", "pod", "crash", "-o", "jsonpath={.status.containerStatuses[0].restartCount}", want="1")
    assert kubectl("logs", "crash", "--previous") == "line 1\nline 2\nline 3\n"
    assert "container x is not valid for pod crash" in kubectl("logs", "crash", "-c", "x", fails=True)


def test_a_log_is_followed_to_the_end(kubectl: Kubectl) -> None:
    _run(kubectl, "count", "for n in 1 2 3; do echo $n; sleep 0.3; done", restartPolicy="Never")
    assert kubectl("logs", "-f", "count") == "1\n2\n3\n"


def test_commands_with_input_and_exit_codes(kubectl: Kubectl) -> None:
    _run(kubectl, "box", "sleep 600", terminationGracePeriodSeconds=1)
    assert kubectl("exec", "box", "--", "echo", "hello") == "hello\n"
    assert kubectl("exec", "-i", "box", "--", "cat", stdin="word\n") == "word\n"
    told = kubectl("exec", "box", "--", "sh", "-c", "echo oops >&2; exit 7", fails=True)
    assert "oops" in told
    assert "command terminated with exit code 7" in told
    assert "cannot run 'no-such-command'" in kubectl("exec", "box", "--", "no-such-command", fails=True)


def test_files_are_copied_there_and_back(kubectl: Kubectl, tmp_path: pathlib.Path) -> None:
    _run(kubectl, "box", "sleep 600", terminationGracePeriodSeconds=1)
    source, there, back = tmp_path / "source", tmp_path / "there", tmp_path / "back"
    source.write_bytes(os.urandom(300_000))
    kubectl("cp", str(source), f"box:{there}")
    kubectl("cp", f"box:{there}", str(back))
    assert back.read_bytes() == source.read_bytes()


def test_who_is_attached_speaks_with_the_container(kubectl: Kubectl) -> None:
    _run(kubectl, "parrot", "read line; echo got $line; sleep 1", stdin=True, restartPolicy="Never")
    assert "got word" in kubectl("attach", "-i", "parrot", stdin="word\n")


def test_a_port_is_forwarded(
    kubectl: Kubectl, kubectl_binary: pathlib.Path, environment: dict[str, str], namespace: str
) -> None:
    with ports.reserved() as port:
        # kubectl gives up its local port when the first connection to the container's is refused.
        listens = {"tcpSocket": {"port": port}, "periodSeconds": 1}
        serve = f"echo hello > index.html; exec python3 -m http.server {port} --bind 127.0.0.1"
        _run(kubectl, "web", serve, readinessProbe=listens, terminationGracePeriodSeconds=1)
        kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=90s")
        forwarding = subprocess.Popen(
            [str(kubectl_binary), "--namespace", namespace, "port-forward", "pod/web", f":{port}"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            assert forwarding.stdout is not None
            local = forwarding.stdout.readline().split(" -> ")[0].rpartition(":")[2]
            for _ in range(3):
                with urllib.request.urlopen(f"http://127.0.0.1:{local}/index.html", timeout=60) as response:
                    assert response.read() == b"hello\n"
        finally:
            forwarding.terminate()
            forwarding.communicate(timeout=60)


def test_a_pod_that_minds_its_end_is_gone_within_its_grace_period(kubectl: Kubectl, tmp_path: pathlib.Path) -> None:
    hook = {"preStop": {"exec": {"command": ["touch", f"{tmp_path}/told"]}}}
    script = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
    _run(kubectl, "polite", script, lifecycle=hook, terminationGracePeriodSeconds=300)
    kubectl("delete", "pod", "polite", "--timeout=90s")
    assert (tmp_path / "told").exists()
    assert "NotFound" in kubectl("get", "pod", "polite", fails=True)


def test_what_a_node_serves(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/api/v1/nodes/node-0/proxy/healthz") == "ok"
    summary = json.loads(kubectl("get", "--raw", "/api/v1/nodes/node-1/proxy/stats/summary"))
    assert summary["node"]["nodeName"] == "node-1"


@pytest.mark.skipif(not process.can_mount(), reason="this user cannot mount volumes for processes")
def test_what_a_container_is_given(kubectl: Kubectl, tmp_path: pathlib.Path) -> None:
    """Variables, files and a token with which the API server is reached, once all of it is there."""
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    ask = f'curl -s --cacert {account}/ca.crt -H "Authorization: Bearer $(cat {account}/token)"'
    script = f"""
    echo greeting=$GREETING; echo file=$(cat {tmp_path}/settings/greeting); echo pod=$1
    echo who=$({ask} -X POST -H 'Content-Type: application/json' -d '{{}}' \
      https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/apis/authentication.k8s.io/v1/selfsubjectreviews)
    sleep 600
    """
    reference = {"configMapKeyRef": {"name": "settings", "key": "greeting"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "given"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "c",
                    "image": "none",
                    "command": ["sh", "-c", script, "sh"],
                    "args": ["$(NAME)"],
                    "env": [
                        {"name": "GREETING", "valueFrom": reference},
                        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    ],
                    "volumeMounts": [{"name": "settings", "mountPath": f"{tmp_path}/settings"}],
                }
            ],
            "volumes": [{"name": "settings", "configMap": {"name": "settings", "optional": True}}],
        },
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    waiting = "jsonpath={.status.containerStatuses[0].state.waiting}"
    told = eventually(kubectl, "get", "pod", "given", "-o", waiting, want="CreateContainerConfigError")
    assert 'configmap \\"settings\\" not found' in told
    kubectl("create", "configmap", "settings", "--from-literal=greeting=hello")
    kubectl("delete", "pod", "given")
    kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    eventually(kubectl, "get", "pod", "given", "-o", "jsonpath={.status.phase}", want="Running")
    shown = eventually(kubectl, "logs", "given", want="who=.*system:serviceaccount:.*:default")
    assert "greeting=hello\nfile=hello\npod=given\n" in shown


def test_probes_say_when_a_container_is_ready_and_when_it_is_not(kubectl: Kubectl, tmp_path: pathlib.Path) -> None:
    sign, often = tmp_path / "sign", {"periodSeconds": 1, "failureThreshold": 1}
    _run(
        kubectl,
        "probed",
        "sleep 600",
        readinessProbe={"exec": {"command": ["cat", f"{sign}-ready"]}, **often},
        livenessProbe={"exec": {"command": ["sh", "-c", f"! cat {sign}-dead"]}, **often},
        terminationGracePeriodSeconds=1,
    )
    assert kubectl("get", "pod", "probed", "--no-headers").split()[1] == "0/1"
    pathlib.Path(f"{sign}-ready").touch()
    kubectl("wait", "pod/probed", "--for=condition=Ready", "--timeout=90s")
    pathlib.Path(f"{sign}-dead").touch()
    message = "Container c failed liveness probe, will be restarted"
    eventually(kubectl, "get", "events", "--field-selector=reason=Killing", want=message)


@pytest.mark.skipif(not process.can_mount(), reason="this user cannot mount volumes for processes")
def test_a_container_is_greeted_and_leaves_a_message(kubectl: Kubectl, tmp_path: pathlib.Path) -> None:
    greeting = {"postStart": {"exec": {"command": ["touch", str(tmp_path / "greeted")]}}}
    script = f"while [ ! -e {tmp_path}/greeted ]; do sleep 0.05; done; echo out of luck > /dev/termination-log; exit 3"
    _run(kubectl, "luck", script, lifecycle=greeting, restartPolicy="Never")
    ended = "jsonpath={.status.containerStatuses[0].state.terminated.message}"
    eventually(kubectl, "get", "pod", "luck", "-o", ended, want="out of luck")
    _run(
        kubectl,
        "silent",
        "echo the last line; exit 4",
        restartPolicy="Never",
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    eventually(kubectl, "get", "pod", "silent", "-o", ended, want="the last line")


def test_a_pod_is_debugged(kubectl: Kubectl) -> None:
    _run(kubectl, "box", "sleep 600", terminationGracePeriodSeconds=1)
    kubectl("debug", "box", "--image=none", "--container=look", "--", "sh", "-c", "echo looked; exit 5")
    state = "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}"
    eventually(kubectl, "get", "pod", "box", "-o", state, want="5")
    assert kubectl("logs", "box", "-c", "look") == "looked\n"


def test_what_pods_and_nodes_use(kubectl: Kubectl, environment: dict[str, str], namespace: str) -> None:
    _run(kubectl, "busy", "while :; do :; done", terminationGracePeriodSeconds=1)
    eventually(kubectl, "top", "pods", want=r"busy +[1-9][0-9]*m")
    assert {line.split()[0] for line in kubectl("top", "nodes", "--no-headers").splitlines()} == {"node-0", "node-1"}
    assert "busy" not in kubectl("top", "pods", "-l", "app=other")
    assert "c " in kubectl("top", "pod", "busy", "--containers")
    shown = _drachma(environment, "top", "pods", "-n", namespace).splitlines()
    assert [line.split()[:2] for line in shown] == [["NAMESPACE", "NAME"], [namespace, "busy"]]


def test_drachmas_own_logs(kubectl: Kubectl, environment: dict[str, str], namespace: str) -> None:
    _run(kubectl, "count", "for n in 1 2 3; do echo $n; sleep 0.2; done", restartPolicy="Never")
    assert _drachma(environment, "logs", "count", "-n", namespace, "-f") == "1\n2\n3\n"
    assert _drachma(environment, "logs", "count", "-n", namespace, "--tail", "1") == "3\n"


def _drachma(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-c", "from drachma.cli import main; main()", *arguments]
    paths = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    outcome = subprocess.run(
        command, capture_output=True, text=True, env={**environment, **paths}, timeout=120, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives processes another user")
def test_a_container_has_the_user_of_its_security_context(kubectl: Kubectl) -> None:
    context = {"runAsUser": 123456, "runAsGroup": 7, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}}
    _run(kubectl, "other", "id -u; id -g; echo x > file; exec sleep 600", securityContext=context)
    eventually(kubectl, "logs", "other", want="123456\n7\n")
    assert kubectl("exec", "other", "--", "sh", "-c", "cat file; id -u") == "x\n123456\n"
    kubectl("delete", "pod", "other", "--grace-period=1")


@pytest.mark.parametrize(
    ("context", "want"),
    [
        pytest.param(
            {"seccompProfile": {"type": "RuntimeDefault"}, "readOnlyRootFilesystem": True},
            "container c: runtime process cannot enforce "
            "securityContext.readOnlyRootFilesystem, securityContext.seccompProfile; "
            "--allow-unenforced-security runs such containers without",
            id="unenforced",
        ),
        pytest.param(
            {"runAsNonRoot": True},
            "container has runAsNonRoot and image will run as root",
            id="root",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="the agent is not root"),
        ),
    ],
)
def test_a_container_that_would_have_more_than_it_asks_for(
    kubectl: Kubectl, context: dict[str, object], want: str
) -> None:
    container = {"name": "c", "image": "none", "command": ["sleep", "600"], "securityContext": context}
    spec = {"automountServiceAccountToken": False, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "confined"}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    state = "jsonpath={.status.containerStatuses[0].state.waiting['reason','message']}"
    eventually(kubectl, "get", "pod", "confined", "-o", state, want=f"CreateContainerConfigError {want}")
    kubectl("delete", "pod", "confined", "--grace-period=1")


@pytest.mark.skipif(not process.can_mount(), reason="this user cannot mount")
def test_a_link_in_a_volume_does_not_lead_a_sub_path_out(kubectl: Kubectl, tmp_path: pathlib.Path) -> None:
    place = tmp_path / "volume"
    plant = f"ln -s /etc {place}/link; mkdir {place}/own; ln -s own {place}/near"
    mount = {"name": "v", "mountPath": str(place)}
    containers = [
        {
            "name": name,
            "image": "none",
            "command": ["sh", "-c", f"ls {place}; exec sleep 600"],
            "volumeMounts": [{**mount, "subPath": sub_path}],
        }
        for name, sub_path in (("thief", "link"), ("own", "near/made"))
    ]
    planter = {"name": "plant", "image": "none", "command": ["sh", "-c", plant], "volumeMounts": [mount]}
    spec = {
        "automountServiceAccountToken": False,
        "initContainers": [planter],
        "containers": containers,
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "escape"}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    shown = 'jsonpath={range .status.containerStatuses[*]}{.name} {.state.waiting.message}{.started}{"\\n"}{end}'
    want = 'thief failed to prepare subPath for volumeMount "v" of container "thief"false\nown true'
    eventually(kubectl, "get", "pod", "escape", "-o", shown, want=want)
    assert kubectl("logs", "escape", "-c", "own") == ""
    kubectl("delete", "pod", "escape", "--grace-period=1")
