"""A real control plane on loopback: etcd, kube-apiserver, and upstream's scheduler and controllers where a test asks.

Every program logs to a file in the folder of the control plane. The API server writes an audit log, so that tests see
the answer to every request of a component.
"""

import contextlib
import datetime as dt
import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from drachma.server.access import certificates
from tests import patience, ports
from tests.cluster import programs
from tests.scenarios import processes, wire

Document = dict[str, Any]

TOKEN = "admin-token"
NODE = "worker"
NODE_TOKEN = "node-token"
"""Token of the identity of the only node that a test may run an agent for."""
GATES = (
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAFractionalCapacityRange",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAOptionalNodeOperations",
    "DRAPartitionableDevicesType",
    "DRAResourcePoolStatus",
    "DRAWorkloadResourceClaims",
    "GenericWorkload",
)
"""Gates that the recordings of scheduling were made with."""

_POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
_WITHOUT = "-node-lifecycle-controller,-taint-eviction-controller"
"""Controllers that would evict the pods of nodes that no kubelet runs on."""


class Program:
    """A running program, which a test may kill."""

    def __init__(self, name: str, command: Sequence[str], log: pathlib.Path, **variables: str) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **variables}
            )

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self) -> None:
        """Ask it to end, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(patience.SECONDS)
        assert code == 0, f"{self.name} ended with {code}: {self.tail()}"

    def check(self) -> None:
        """Fail with the end of the log if it has ended."""
        assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}: {self.tail()}"

    def wait_for(self, text: str) -> None:
        """Wait until the log has a text."""

        def look() -> str:
            self.check()
            return self.log.read_text(errors="replace")

        patience.until(look, lambda log: text in log, what=f"{self.name} logs {text!r}")

    def tail(self) -> str:
        """Return the end of the log."""
        return self.log.read_text(errors="replace")[-3000:]


class ControlPlane:
    """A running kube-apiserver with its etcd. Has what ``wire.Wire`` needs to connect: url, token, authority."""

    def __init__(self, folder: pathlib.Path, port: int) -> None:
        self.folder = folder
        self.url = f"https://127.0.0.1:{port}"
        self.token = TOKEN
        self.authority = folder / "pki" / "ca.crt"
        self.audit_log = folder / "audit.log"
        self.kubeconfig = self.write_kubeconfig("admin", TOKEN)
        self.servers: dict[str, Program] = {}
        """etcd and the API server by name."""
        self._server_command: list[str] = []
        self._count = 0

    def write_kubeconfig(self, user: str, token: str) -> pathlib.Path:
        """Return a kubeconfig of a user with a token."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "clusters": [
                {"name": "it", "cluster": {"server": self.url, "certificate-authority": str(self.authority)}},
            ],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": user}}],
        }
        path = self.folder / f"{user}.kubeconfig"
        path.write_text(yaml.safe_dump(content))
        return path

    def start(self, name: str, command: Sequence[str], **variables: str) -> Program:
        """Start a program, which the caller has to end."""
        self._count += 1
        return Program(name, command, self.folder / f"{name}-{self._count}.log", **variables)

    def start_drachma(
        self, component: str, *options: str, kubeconfig: pathlib.Path | None = None, source: str = ""
    ) -> Program:
        """Start a component of drachma, which the caller has to end; ``source`` is the folder of another version."""
        command = [*processes.DRACHMA, component, "--kubeconfig", str(kubeconfig or self.kubeconfig), *options]
        other = {"PYTHONPATH": source} if source else {}
        return self.start(f"drachma-{component}", command, PYTHONUNBUFFERED="1", **other)

    @contextlib.contextmanager
    def running(self, name: str, command: Sequence[str], **variables: str) -> Iterator[Program]:
        """Run a program until the end of the block."""
        program = self.start(name, command, **variables)
        try:
            yield program
        finally:
            program.kill()

    @contextlib.contextmanager
    def drachma(self, component: str, *options: str, kubeconfig: pathlib.Path | None = None) -> Iterator[Program]:
        """Run a component of drachma until the end of the block."""
        program = self.start_drachma(component, *options, kubeconfig=kubeconfig)
        try:
            yield program
        finally:
            program.kill()

    def kube_scheduler(self, config: pathlib.Path | None = None) -> contextlib.AbstractContextManager[Program]:
        """Run upstream's scheduler."""
        own = [f"--config={config}"] if config else [f"--kubeconfig={self.kubeconfig}", "--leader-elect=false"]
        command = [str(programs.built("kube-scheduler")), *own, "--secure-port=0", f"--feature-gates={_gates(GATES)}"]
        return self.running("kube-scheduler", command)

    def kube_controllers(
        self, without: str = "", *, has_agents: bool = False
    ) -> contextlib.AbstractContextManager[Program]:
        """Run upstream's controllers, all but some; those of nodes only if agents report the state of nodes."""
        left_out = [each for each in ("" if has_agents else _WITHOUT, "-node-ipam-controller", without) if each]
        command = [
            str(programs.built("kube-controller-manager")),
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--controllers=*,{','.join(left_out)}",
            f"--service-account-private-key-file={self.folder}/pki/accounts.key",
            f"--root-ca-file={self.authority}",
            f"--feature-gates={_gates(GATES)}",
        ]
        return self.running("kube-controller-manager", command)

    def start_server(self, command: list[str]) -> None:
        """Start the API server, and wait until it is ready."""
        self._server_command = command
        self.servers["kube-apiserver"] = self.start("kube-apiserver", command)
        _wait(self, self.servers["kube-apiserver"])

    def kill_server(self) -> None:
        """Kill the API server as a power cut would."""
        self.servers["kube-apiserver"].kill()

    def restart_server(self) -> None:
        """Start the API server again after it was killed."""
        self.start_server(self._server_command)

    def answers(self, user: str) -> list[Document]:
        """Return the audit events of a user, oldest first."""
        lines = self.audit_log.read_text().rpartition("\n")[0].splitlines()
        return [each for each in map(json.loads, lines) if each["user"]["username"] == user]


def _account_key() -> bytes:
    """Return a key that signs tokens, in the only form in which Kubernetes reads keys of elliptic curves."""
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _gates(names: Sequence[str]) -> str:
    """Return the option for gates that are on by their names, or written with their values."""
    return ",".join(name if "=" in name else f"{name}=true" for name in names)


@contextlib.contextmanager
def control_plane(
    folder: pathlib.Path,
    *,
    api_server: str = "kube-apiserver",
    gates: Sequence[str] = GATES,
    apis: str = "api/all=true",
    authorization: str = "Node,RBAC",
    is_audited: bool = True,
) -> Iterator[ControlPlane]:
    """Run etcd and an API server until the end of the block; ``apis`` is its runtime configuration.

    An audited API server writes one line for each request.

    Raises:
        programs.MissingError: a program is not built.
    """
    etcd, server = programs.built("etcd"), programs.built(api_server)
    (folder / "policy.yaml").write_text(_POLICY)
    (folder / "tokens.csv").write_text(
        f"{TOKEN},admin,admin,system:masters\n{NODE_TOKEN},system:node:{NODE},{NODE},system:nodes\n"
    )
    files = certificates.ensure(folder / "pki", hosts=["127.0.0.1"], now=dt.datetime.now(dt.UTC))
    proxy = certificates.make_client(files, user="aggregator", now=dt.datetime.now(dt.UTC))
    for name, content in zip(("proxy.crt", "proxy.key"), proxy, strict=True):
        (folder / "pki" / name).write_bytes(content)
    (folder / "pki" / "accounts.key").write_bytes(_account_key())
    with contextlib.ExitStack() as stack:
        store, peer, port = (stack.enter_context(ports.reserved()) for _ in range(3))
        plane = ControlPlane(folder, port)
        etcd_command = [
            str(etcd),
            f"--data-dir={folder}/etcd",
            f"--listen-client-urls=http://127.0.0.1:{store}",
            f"--advertise-client-urls=http://127.0.0.1:{store}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
            "--log-level=error",
        ]
        plane.servers["etcd"] = stack.enter_context(plane.running("etcd", etcd_command))
        command = [
            str(server),
            f"--etcd-servers=http://127.0.0.1:{store}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={files.certificate}",
            f"--tls-private-key-file={files.key}",
            f"--client-ca-file={files.authority}",
            f"--requestheader-client-ca-file={files.authority}",
            "--requestheader-allowed-names=aggregator",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={folder}/pki/proxy.crt",
            f"--proxy-client-key-file={folder}/pki/proxy.key",
            f"--token-auth-file={folder}/tokens.csv",
            f"--authorization-mode={authorization}",
            "--service-account-issuer=https://cluster.example.com",
            f"--service-account-key-file={folder}/pki/accounts.key",
            f"--service-account-signing-key-file={folder}/pki/accounts.key",
            "--service-cluster-ip-range=10.0.0.0/24",
            # No kubelet runs these pods, so no controller has to make their accounts first.
            "--disable-admission-plugins=ServiceAccount",
            f"--runtime-config={apis}",
            f"--feature-gates={_gates(gates)}",
        ]
        if is_audited:
            command += [
                f"--audit-policy-file={folder}/policy.yaml",
                f"--audit-log-path={plane.audit_log}",
                "--audit-log-mode=blocking-strict",
            ]
        try:
            plane.start_server(command)
            yield plane
        finally:
            plane.kill_server()


def _wait(plane: ControlPlane, server: Program) -> None:
    def look() -> str:
        server.check()
        try:
            with wire.Wire(plane) as connection:
                answer = connection.call("GET", "/readyz")
        except OSError as error:
            return str(error)
        return "ok" if answer.code == 200 else str(answer.body)

    patience.until(look, lambda seen: seen == "ok", what="the API server is ready")
