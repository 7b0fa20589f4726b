"""Every component of ``drachma manifests`` with exactly its permissions works, and the server refuses nothing."""

import pathlib
from typing import Any

import pytest
import yaml

from drachma.deployment import components
from tests import patience
from tests.cluster import controlplane, installation, objects
from tests.conformance import vectors
from tests.scenarios import wire

Document = dict[str, Any]

_OPTIONS = (f"--leader-elect-resource-namespace={installation.NAMESPACE}",)
_DEFINITIONS = vectors.folder().parent / "kueue" / "crds"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"


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
        _create_job(cluster, "work", queue="")
        pods = patience.until(lambda: _pods_of(cluster, "work"), what="the Job has a pod")
        cluster.call("DELETE", f"{_JOBS}/work", {"propagationPolicy": "Background"})
        patience.until(lambda: _pods_of(cluster, "work"), lambda left: not left, what=f"pods {pods} are gone")
        controllers.check()
    assert installation.refusals(plane, "controllers") == set()


@pytest.mark.skipif(not _DEFINITIONS.is_dir(), reason=f"Kueue's definitions absent: {_DEFINITIONS}")
def test_queueing_is_refused_nothing(
    plane: controlplane.ControlPlane, cluster: wire.Wire, tmp_path: pathlib.Path
) -> None:
    install_definitions(cluster)
    own = components.queueing()
    kubeconfig = installation.install(plane, cluster, [own])["queueing"]
    with (
        plane.kube_controllers(),
        plane.drachma("queueing", *_OPTIONS, kubeconfig=kubeconfig) as queueing,
    ):
        queueing.wait_for("leads by lease")
        create_queue(cluster, "roles")
        _create_job(cluster, "queued", queue="roles")
        patience.until(
            lambda: cluster.call("GET", f"{_JOBS}/queued").body.get("spec", {}),
            lambda spec: spec.get("suspend") is False,
            what="the Job is admitted",
        )
        cluster.call("DELETE", f"{_JOBS}/queued", {"propagationPolicy": "Background"})
        patience.until(lambda: _workloads(cluster), lambda left: not left, what="the workload is gone")
        queueing.check()
    assert installation.refusals(plane, "queueing") == set()


def install_definitions(admin: wire.Wire) -> None:
    """Install Kueue's definitions, and wait until the API server serves them."""
    for file in sorted(_DEFINITIONS.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            # Conversion is the business of webhooks, which no test of roles runs.
            document["spec"].pop("conversion", None)
            for version in document["spec"]["versions"]:
                version["served"] = version["name"] == "v1beta2"
            answer = admin.call("POST", objects.path(document), document)
            assert answer.code in (201, 409), answer.body
    patience.until(
        lambda: [admin.call("GET", f"/apis/kueue.x-k8s.io/v1beta2/{each}").code for each in ("workloads", "cohorts")],
        lambda codes: codes == [200, 200],
        what="Kueue's kinds are served",
    )


def create_queue(admin: wire.Wire, name: str) -> None:
    """Create a flavor, a cluster queue with quota for 2 CPUs, and a local queue."""
    version = "kueue.x-k8s.io/v1beta2"
    quota = {"name": "cpu", "nominalQuota": "2"}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": [quota]}]}]
    objects.create(
        admin,
        {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {}},
        {
            "apiVersion": version,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": groups},
        },
        {
            "apiVersion": version,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"clusterQueue": name},
        },
    )


def _create_job(admin: wire.Wire, name: str, *, queue: str) -> None:
    container = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    spec = {"template": template, **({"suspend": True} if queue else {})}
    objects.create(admin, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def _pods_of(admin: wire.Wire, job: str) -> list[str]:
    items = admin.call("GET", f"{objects.PODS}?labelSelector=batch.kubernetes.io/job-name%3D{job}").body["items"]
    return [each["metadata"]["name"] for each in items]


def _workloads(admin: wire.Wire) -> list[Document]:
    items: list[Document] = admin.call("GET", "/apis/kueue.x-k8s.io/v1beta2/workloads").body["items"]
    return items
