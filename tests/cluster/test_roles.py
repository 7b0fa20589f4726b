"""Every component of ``drachma manifests`` with exactly its permissions works, and the server refuses nothing."""

import functools
import pathlib
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from drachma.deployment import components
from tests import patience, ports
from tests.cluster import controlplane, installation, nodegroup, objects, queues
from tests.scenarios import wire

Document = dict[str, Any]

_OPTIONS = (f"--leader-elect-resource-namespace={installation.NAMESPACE}",)


@pytest.fixture
def cluster(admin: wire.Wire, cleared: None) -> wire.Wire:
    objects.create(admin, objects.device_class(), objects.node("n1"), objects.resource_slice("n1", 4))
    return admin


def test_the_scheduler_is_refused_nothing(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    own = components.scheduler("drachma-scheduler")
    kubeconfig = installation.install(plane, cluster, [own])["scheduler"]
    arguments = [*own.arguments[1:], *_OPTIONS, f"--leader-elect-resource-name={own.lease}"]
    with plane.drachma("scheduler", *arguments, kubeconfig=kubeconfig) as scheduler:
        scheduler.wait_for("leads by lease")
        objects.create(cluster, objects.claim("c"), objects.claim("spaced", {"a": 1}))
        for name in ("c", "spaced"):
            objects.create(cluster, objects.pod(name, claim_name=name, scheduler="drachma-scheduler"))
            objects.wait_for_node(cluster, name)
        # Too large for the node: the condition, the event and the search for victims are requests as well.
        large = objects.pod("large", scheduler="drachma-scheduler")
        large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100"
        objects.create(cluster, large)
        patience.until(
            lambda: cluster.call("GET", f"{objects.PODS}/large").body.get("status", {}).get("conditions", ()),
            lambda conditions: any(each["type"] == "PodScheduled" for each in conditions),
            what="the pod has a condition",
        )
        scheduler.check()
    assert installation.refusals(plane, "scheduler") == set()


def test_the_exporter_is_refused_nothing(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    kubeconfig = installation.install(plane, cluster, [components.exporter()])["exporter"]
    objects.create(cluster, objects.claim("waits"))
    with (
        ports.reserved() as port,
        plane.drachma("exporter", f"--metrics-port={port}", kubeconfig=kubeconfig) as exporter,
    ):

        def scrape() -> str:
            exporter.check()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                    return str(answer.read().decode())
            except OSError as error:
                return str(error)

        content = patience.until(scrape, lambda text: "drachma_devices{" in text, what="the exporter has counted")
    assert f'drachma_devices{{driver="{objects.DRIVER}",node="n1",state="free"}} 4.0' in content
    assert 'drachma_resource_claims{namespace="default",state="pending"} 1.0' in content
    assert installation.refusals(plane, "exporter") == set()


def test_controllers_are_refused_nothing(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    names = "resourceclaim-controller,job-controller,replicaset-controller,garbage-collector-controller"
    own = components.controllers(names)
    kubeconfig = installation.install(plane, cluster, [own])["controllers"]
    without = ",".join(f"-{name}" for name in names.split(","))
    arguments = [*own.arguments[1:], *_OPTIONS, f"--leader-elect-resource-name={own.lease}"]
    with (
        plane.kube_controllers(without=without),
        plane.kube_scheduler(),
        plane.drachma("controllers", *arguments, kubeconfig=kubeconfig) as controllers,
    ):
        controllers.wait_for("leads by lease")
        objects.create(cluster, objects.template("one"), objects.pod("p", template_name="one"))
        objects.wait_for_node(cluster, "p")
        cluster.call("DELETE", f"{objects.PODS}/p", {"gracePeriodSeconds": 0})
        patience.until(lambda: objects.claims(cluster), lambda claims: not claims, what="the claim is gone")
        queues.create_job(cluster, "work", queue="")
        pods = patience.until(lambda: _pods_of(cluster, "work"), what="the Job has a pod")
        cluster.call("DELETE", f"{queues.JOBS}/work", {"propagationPolicy": "Background"})
        patience.until(lambda: _pods_of(cluster, "work"), lambda left: not left, what=f"pods {pods} are gone")
        controllers.check()
    assert installation.refusals(plane, "controllers") == set()


@pytest.fixture
def buffers(cluster: wire.Wire) -> Iterator[list[str]]:
    """Return the paths of capacity buffers, one for each sort of reference."""
    definition: Document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "capacitybuffers.autoscaling.x-k8s.io",
            # Groups of Kubernetes are protected.
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": "autoscaling.x-k8s.io",
            "names": {"kind": "CapacityBuffer", "plural": "capacitybuffers"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    objects.create(cluster, definition)
    place = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers"
    patience.until(lambda: cluster.call("GET", place).code, lambda code: code == 200, what="buffers are served")
    labels = {"app": "spare"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    deployment = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "spare", "namespace": "default"}
    objects.create(
        cluster,
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment},
    )
    references: dict[str, Document] = {
        "by-template": {"podTemplateRef": {"name": "spare"}, "replicas": 1},
        "by-deployment": {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "spare"}, "replicas": 1},
    }
    for name, spec in references.items():
        head = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": name}}
        answer = cluster.call("POST", place, {**head, "spec": spec})
        assert answer.code == 201, answer.body
    yield [f"{place}/{name}" for name in references]
    for name in references:
        cluster.call("DELETE", f"{place}/{name}")
    cluster.call("DELETE", f"{objects.path(definition)}/{definition['metadata']['name']}")


def _is_provisioned(admin: wire.Wire, buffer: str) -> bool:
    conditions = admin.call("GET", buffer).body.get("status", {}).get("conditions", ())
    return any(each["type"] == "Provisioning" and each["status"] == "True" for each in conditions)


def test_the_autoscaler_is_refused_nothing(
    plane: controlplane.ControlPlane, cluster: wire.Wire, buffers: list[str], tmp_path: pathlib.Path
) -> None:
    group = nodegroup.NodeGroup(tmp_path, most=1)
    own = components.autoscaler(command=str(group.command))
    kubeconfig = installation.install(plane, cluster, [own])["autoscaler"]
    arguments = [each.replace("/node-groups/groups.yaml", str(group.file)) for each in own.arguments[1:]]
    options = [*_OPTIONS, f"--leader-elect-resource-name={own.lease}", "--interval=1", "--unneeded=1", "--cooldown=1"]
    with plane.kube_scheduler(), plane.drachma("autoscaler", *arguments, *options, kubeconfig=kubeconfig) as scaler:

        def has_ordered(order: str) -> bool:
            scaler.check()
            return order in group.orders()

        scaler.wait_for("leads by lease")
        objects.create(cluster, nodegroup.large_pod("large"))
        patience.until(lambda: has_ordered("grow boxes 1"), what="a node is ordered")
        objects.create(cluster, nodegroup.machine("box-1", is_ready=True))
        assert objects.wait_for_node(cluster, "large") == "box-1"
        cluster.call("DELETE", f"{objects.PODS}/large", {"gracePeriodSeconds": 0})
        patience.until(lambda: has_ordered("remove boxes box-1"), what="the node is returned")
        for each in buffers:
            patience.until(functools.partial(_is_provisioned, cluster, each), what=f"{each} is provisioned")
        scaler.check()
    assert installation.refusals(plane, "autoscaler") == set()


@pytest.mark.skipif(not queues.DEFINITIONS.is_dir(), reason=f"Kueue's definitions absent: {queues.DEFINITIONS}")
def test_queueing_is_refused_nothing(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    queues.install_definitions(cluster)
    own = components.queueing()
    kubeconfig = installation.install(plane, cluster, [own])["queueing"]
    with (
        plane.kube_controllers(),
        plane.drachma("queueing", kubeconfig=kubeconfig) as queueing,
    ):
        queueing.wait_for("leads by lease")
        queues.create_queue(cluster, "roles")
        queues.create_job(cluster, "queued", queue="roles", suspend=True)
        patience.until(
            lambda: cluster.call("GET", f"{queues.JOBS}/queued").body.get("spec", {}),
            lambda spec: spec.get("suspend") is False,
            what="the Job is admitted",
        )
        cluster.call("DELETE", f"{queues.JOBS}/queued", {"propagationPolicy": "Background"})
        patience.until(lambda: _workloads(cluster), lambda left: not left, what="the workload is gone")
        queueing.check()
    assert installation.refusals(plane, "queueing") == set()


def _pods_of(admin: wire.Wire, job: str) -> list[str]:
    items = admin.call("GET", f"{objects.PODS}?labelSelector=batch.kubernetes.io/job-name%3D{job}").body["items"]
    # Without a kubelet, a bound pod that is deleted stays.
    return [each["metadata"]["name"] for each in items if "deletionTimestamp" not in each["metadata"]]


def _workloads(admin: wire.Wire) -> list[Document]:
    items: list[Document] = admin.call("GET", "/apis/kueue.x-k8s.io/v1beta2/workloads").body["items"]
    return items
