"""Webhooks and visibility of queueing on a real API server, which calls both over HTTPS."""

import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml

from tests import patience, ports
from tests.cluster import controlplane, objects, queues
from tests.scenarios import processes, wire

pytestmark = pytest.mark.skipif(
    not queues.DEFINITIONS.is_dir(), reason=f"Kueue's definitions absent: {queues.DEFINITIONS}"
)

_PENDING = "/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/team/pendingworkloads"


@pytest.fixture
def cluster(plane: controlplane.ControlPlane, admin: wire.Wire, cleared: None) -> Iterator[wire.Wire]:
    queues.install_definitions(admin)
    _create_namespace(admin, "kueue-system")
    created: list[str] = []
    with ports.reserved() as webhooks, ports.reserved() as visibility:
        options = (
            f"--webhooks=127.0.0.1:{webhooks}",
            f"--webhook-certificates={plane.folder}/webhooks",
            f"--visibility=127.0.0.1:{visibility}",
            f"--visibility-certificates={plane.folder}/visibility",
            "--visibility-host=localhost",
        )
        with plane.kube_controllers(), plane.drachma("queueing", *options) as queueing:
            queueing.wait_for("leads by lease")
            for document in _printed(options):
                if document["kind"] == "Namespace":
                    continue
                _create_namespace(admin, document["metadata"].get("namespace"))
                objects.create(admin, document)
                created.append(f"{objects.path(document)}/{document['metadata']['name']}")
            yield admin
            for place in created:
                admin.call("DELETE", place)
            queueing.check()


def _printed(options: Sequence[str]) -> Iterator[dict[str, Any]]:
    for print_option in ("--print-webhooks", "--print-visibility"):
        command = [*processes.DRACHMA, "queueing", *options, print_option]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        yield from yaml.safe_load_all(done.stdout)


def _create_namespace(admin: wire.Wire, name: str | None) -> None:
    if name:
        admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})


def test_jobs_are_suspended_admitted_and_shown_while_they_wait(cluster: wire.Wire) -> None:
    queues.create_queue(cluster, "team")
    for number in range(3):
        queues.create_job(cluster, f"job-{number}", queue="team")
    specs = [cluster.call("GET", f"{queues.JOBS}/job-{number}").body["spec"] for number in range(3)]
    assert all(spec["suspend"] for spec in specs) or specs[0]["suspend"] is False, "the webhook suspends new Jobs"

    def admitted() -> int:
        items = cluster.call("GET", queues.JOBS).body["items"]
        return sum(each["spec"]["suspend"] is False for each in items)

    patience.until(admitted, lambda count: count == 2, what="two Jobs are admitted, as many as the quota allows")
    answer = patience.until(
        lambda: cluster.call("GET", _PENDING),
        lambda seen: seen.code == 200 and len(seen.body.get("items", ())) == 1,
        what="the third is pending",
    )
    assert answer.body["items"][0]["localQueueName"] == "team"


def test_the_server_refuses_what_a_webhook_refuses(cluster: wire.Wire) -> None:
    metadata = {"name": "bad", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "not_a_name"}}
    container = {"name": "c", "image": "x:1"}
    spec = {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    answer = cluster.call("POST", queues.JOBS, job)
    assert answer.code == 403, answer.body
    assert "metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value" in answer.body["message"]
