"""Kueue's definitions, queues and Jobs on a real API server."""

import pathlib
from typing import Any

import yaml

from tests import patience
from tests.cluster import objects
from tests.conformance import vectors
from tests.scenarios import wire

DEFINITIONS = vectors.folder().parent / "kueue" / "crds"
"""Folder of Kueue's definitions, which may not exist."""
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def install_definitions(admin: wire.Wire, folder: pathlib.Path = DEFINITIONS) -> None:
    """Install Kueue's definitions of a folder, and wait until the API server serves them."""
    documents = [
        document for file in sorted(folder.glob("*.yaml")) for document in yaml.safe_load_all(file.read_text())
    ]
    # Reading them can take longer than the API server keeps an idle connection. The next call opens another one.
    admin.close()
    for document in documents:
        # Conversion is the business of webhooks, which no test of roles runs.
        document["spec"].pop("conversion", None)
        for version in document["spec"]["versions"]:
            version["served"] = version["name"] == _stored_version(document)
        answer = admin.call("POST", objects.path(document), document)
        assert answer.code in (201, 409), answer.body
    patience.until(
        lambda: {each["name"] for each in admin.call("GET", "/apis/kueue.x-k8s.io/v1beta2").body.get("resources", ())},
        lambda names: {"workloads", "cohorts", "clusterqueues", "localqueues", "resourceflavors"} <= names,
        what="Kueue's kinds are discovered",
    )
    patience.until(
        lambda: [admin.call("GET", f"/apis/kueue.x-k8s.io/v1beta2/{each}").code for each in ("workloads", "cohorts")],
        lambda codes: codes == [200, 200],
        what="Kueue's kinds are served",
    )


def _stored_version(document: dict[str, Any]) -> str:
    (name,) = [each["name"] for each in document["spec"]["versions"] if each["storage"]]
    return str(name)


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


def create_job(admin: wire.Wire, name: str, *, queue: str, suspend: bool = False) -> None:
    """Create a Job of one pod that asks for one CPU."""
    container = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    spec = {"template": template, "suspend": suspend}
    objects.create(admin, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
