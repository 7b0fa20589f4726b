"""Queueing takes over from Kueue's own manager in place, and hands back: objects, configuration, webhooks, lease."""

import subprocess
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import pytest
import yaml

from tests import patience, ports
from tests.cluster import controlplane, kueuemanager, objects, queues
from tests.cluster.churn import WORKLOADS
from tests.scenarios import processes, wire

Document = dict[str, Any]


@pytest.fixture
def kueue(plane: controlplane.ControlPlane) -> kueuemanager.Manager:
    return kueuemanager.Manager(plane)


@pytest.fixture
def cluster(
    plane: controlplane.ControlPlane, kueue: kueuemanager.Manager, admin: wire.Wire, cleared: None
) -> Iterator[wire.Wire]:
    kueue.install_definitions(admin)
    objects.create_if_absent(
        admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kueuemanager.NAMESPACE}}
    )
    with plane.kube_controllers():
        yield admin
        for kind in ("mutating", "validating"):
            place = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
            admin.call("DELETE", f"{place}/kueue-{kind}-webhook-configuration")
        admin.call("DELETE", f"/api/v1/namespaces/{kueuemanager.NAMESPACE}/configmaps/kueue-manager-config")


def _create_job(admin: wire.Wire, name: str) -> None:
    """Create a Job without ``suspend``, with a resource that only the configuration keeps out of quota."""
    requests = {"cpu": "1", f"{kueuemanager.IGNORED}/token": "1"}
    limits = {f"{kueuemanager.IGNORED}/token": "1"}
    container = {"name": "c", "image": "x:1", "resources": {"requests": requests, "limits": limits}}
    metadata = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "takeover"}}
    spec = {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    objects.create(admin, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def _admissions(admin: wire.Wire) -> dict[str, Document]:
    """Return the admission of each workload that has one, by uid."""
    items = admin.call("GET", WORKLOADS).body["items"]
    return {
        each["metadata"]["uid"]: each["status"]["admission"]
        for each in items
        if each.get("status", {}).get("admission")
    }


def _running_jobs(admin: wire.Wire) -> set[str]:
    items = admin.call("GET", queues.JOBS).body["items"]
    return {each["metadata"]["name"] for each in items if each["spec"].get("suspend") is False}


def _wait_for_two_jobs(admin: wire.Wire, *, without: AbstractSet[str] = frozenset()) -> set[str]:
    """Return the Jobs that run as soon as they fill the quota and some others are gone."""
    return patience.until(
        lambda: _running_jobs(admin) - without, lambda seen: len(seen) == 2, what="two other Jobs are admitted"
    )


def _finish(admin: wire.Wire, name: str) -> None:
    admin.call("DELETE", f"{queues.JOBS}/{name}", {"propagationPolicy": "Background"})


def _install_webhooks(admin: wire.Wire, options: tuple[str, ...]) -> None:
    command = [*processes.DRACHMA, "queueing", *options, "--print-webhooks"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for document in yaml.safe_load_all(printed):
        objects.replace(admin, document)


def test_kueue_admits_then_drachma_then_kueue_again(
    plane: controlplane.ControlPlane, kueue: kueuemanager.Manager, cluster: wire.Wire
) -> None:
    objects.create(cluster, kueue.config_map())
    with kueue.running():
        kueue.install_webhooks(cluster)
        queues.create_queue(cluster, "takeover")
        for name in ("a", "b", "c", "d"):
            _create_job(cluster, name)
        first, second = sorted(_wait_for_two_jobs(cluster))
        admitted_by_kueue = _admissions(cluster)
        assert len(admitted_by_kueue) == 2

    with ports.reserved() as port:
        options = (f"--webhooks=127.0.0.1:{port}", f"--webhook-certificates={plane.folder}/takeover")
        with plane.drachma("queueing", *options) as own:
            # The manager was killed, so its lease has to run out.
            own.wait_for("leads by lease kueue-system/c1f6bfd2.kueue.x-k8s.io")
            _install_webhooks(cluster, options)
            assert _admissions(cluster) == admitted_by_kueue, "what Kueue admitted stays as it was"
            _finish(cluster, first)
            running = _wait_for_two_jobs(cluster, without={first})
            assert second in running
            _create_job(cluster, "e")
            answer = cluster.call("GET", f"{queues.JOBS}/e")
            assert answer.body["spec"]["suspend"] is True, "the webhook suspends new Jobs"
            admitted_by_both = _admissions(cluster)
            own.terminate()

    with kueue.running():
        kueue.install_webhooks(cluster)
        patience.until(
            lambda: cluster.call("GET", kueuemanager.LEASE).body["spec"].get("holderIdentity", ""),
            what="Kueue's manager holds the lease again",
        )
        assert _admissions(cluster) == admitted_by_both, "what drachma admitted stays as it was"
        done = {first}
        while len(done) < 5:
            running = patience.until(lambda: _running_jobs(cluster) - done, what="Kueue's manager admits the next Job")
            for name in running:
                _finish(cluster, name)
            done.update(running)
        patience.until(lambda: cluster.call("GET", WORKLOADS).body["items"], lambda left: not left, what="all are gone")


def test_only_the_holder_of_the_lease_admits(
    plane: controlplane.ControlPlane, kueue: kueuemanager.Manager, cluster: wire.Wire
) -> None:
    objects.create(cluster, kueue.config_map())
    with kueue.running(), plane.drachma("queueing") as own:
        own.wait_for("waiting for lease kueue-system/c1f6bfd2.kueue.x-k8s.io")
        queues.create_queue(cluster, "together")
        for number in range(4):
            queues.create_job(cluster, f"together-{number}", queue="together", suspend=True)
        patience.until(lambda: len(_admissions(cluster)), lambda count: count == 2, what="Kueue admits two Jobs")
        for number in range(4):
            _finish(cluster, f"together-{number}")
        patience.until(lambda: cluster.call("GET", WORKLOADS).body["items"], lambda left: not left, what="all are gone")
        own.check()
