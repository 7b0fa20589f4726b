"""Kueue's own manager on a real control plane, with its webhooks, started as a cluster would."""

import base64
import contextlib
import datetime as dt
import pathlib
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from drachma.server.access import certificates
from tests import gobuild, patience, ports
from tests.cluster import controlplane, objects, programs, queues
from tests.scenarios import wire

Document = dict[str, Any]

NAMESPACE = "kueue-system"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/c1f6bfd2.kueue.x-k8s.io"
IGNORED = "ignored.example.com"
"""Prefix of resources that the configuration leaves out of quota."""


class Manager:
    """Kueue's manager and the webhook configurations of its manifests."""

    def __init__(self, plane: controlplane.ControlPlane) -> None:
        programs.require("kueue")
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
            pytest.skip("Kueue reads a certificate in /etc, which only root can put there for one process")
        self._plane = plane
        self._folder = plane.folder / "kueue"
        self._port = 0
        command = [gobuild.go_command("kueue"), "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue"]
        done = subprocess.run(command, cwd=programs.module_of("kueue"), capture_output=True, text=True, check=True)
        self._source = pathlib.Path(done.stdout.strip()) / "config" / "components"
        self._files = certificates.ensure(self._folder / "pki", hosts=["127.0.0.1"], now=dt.datetime.now(dt.UTC))
        served = self._folder / "etc" / "kueue" / "metrics" / "certs"
        served.mkdir(parents=True, exist_ok=True)
        shutil.copy(self._files.certificate, served / "tls.crt")
        shutil.copy(self._files.key, served / "tls.key")

    def install_definitions(self, admin: wire.Wire) -> None:
        """Install the definitions of Kueue's kinds."""
        queues.install_definitions(admin, self._source / "crd" / "bases")

    def configuration(self) -> Document:
        """Return the configuration of Kueue's manager, as its ConfigMap has it."""
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": NAMESPACE,
            "leaderElection": {
                "leaderElect": True,
                "resourceName": "c1f6bfd2.kueue.x-k8s.io",
                "resourceNamespace": NAMESPACE,
            },
            "internalCertManagement": {"enable": False},
            "integrations": {"frameworks": ["batch/job"]},
            "resources": {"excludeResourcePrefixes": [IGNORED]},
        }

    def config_map(self) -> Document:
        """Return the ConfigMap of Kueue's manifests."""
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kueue-manager-config", "namespace": NAMESPACE},
            "data": {"controller_manager_config.yaml": yaml.safe_dump(self.configuration())},
        }

    @contextlib.contextmanager
    def running(self) -> Iterator[controlplane.Program]:
        """Run the manager until the end of the block, and wait until it is ready."""
        with ports.reserved() as self._port, ports.reserved() as health:
            own = {
                "webhook": {
                    "host": "127.0.0.1",
                    "port": self._port,
                    "certDir": f"{self._folder}/etc/kueue/metrics/certs",
                },
                "metrics": {"bindAddress": "0"},
                "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
            }
            file = self._folder / "configuration.yaml"
            file.write_text(yaml.safe_dump({**self.configuration(), **own}))
            manager = f"{programs.built('kueue')} --config={file} --feature-gates=VisibilityOnDemand=false"
            script = f"mount --bind {self._folder}/etc /etc && exec {manager} --kubeconfig={self._plane.kubeconfig}"
            command = ["unshare", "--mount", "sh", "-c", script]
            with self._plane.running("kueue", command) as program:

                def look() -> str:
                    program.check()
                    try:
                        with urllib.request.urlopen(f"http://127.0.0.1:{health}/readyz") as answer:
                            return "ok" if answer.status == 200 else str(answer.status)
                    except OSError as error:
                        return str(error)

                patience.until(look, lambda seen: seen == "ok", what="Kueue's manager is ready")
                yield program

    def install_webhooks(self, admin: wire.Wire) -> None:
        """Have the API server call the manager's webhooks, those of Jobs and of Kueue's own kinds."""
        authority = base64.b64encode(self._files.authority.read_bytes()).decode()
        manifests = self._source / "webhook" / "manifests.yaml"
        for document in yaml.safe_load_all(manifests.read_text()):
            document["metadata"]["name"] = f"kueue-{document['metadata']['name']}"
            document["webhooks"] = [each for each in document["webhooks"] if _is_installed(each)]
            for each in document["webhooks"]:
                path = each["clientConfig"]["service"]["path"]
                each["clientConfig"] = {"url": f"https://127.0.0.1:{self._port}{path}", "caBundle": authority}
            objects.replace(admin, document)


def _is_installed(webhook: Document) -> bool:
    return all(rule["apiGroups"] in (["kueue.x-k8s.io"], ["batch"]) for rule in webhook["rules"])
