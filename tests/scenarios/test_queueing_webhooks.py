"""Kueue's webhooks over HTTPS: what an API server without queueing in its process is answered."""

import asyncio
import base64
import functools
import json
import pathlib
import ssl
import threading
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import aiohttp
import pytest

from drachma import errors
from drachma.api import lease as leases
from drachma.client import target
from drachma.listening import addresses
from drachma.process import conversionwebhook, embedded, queueing, standalone, webhookendpoint, webhookplace
from drachma.queueing.component import ActiveConfiguration, QueueingComponent
from drachma.runtime import Surroundings, clock, lease
from drachma.server import lanes
from drachma.server.access import certificates
from drachma.store import memory
from tests import patience
from tests.scenarios import queues

_LONG_SECONDS = 20.0
"""Time after which a review that holds up another one gives up."""
_QUEUE = {"kueue.x-k8s.io/queue-name": "team"}


class _Endpoint(NamedTuple):
    """An endpoint that answers, and how to ask it."""

    url: str
    authority: pathlib.Path
    session: aiohttp.ClientSession

    async def post(self, path: str, body: bytes) -> tuple[int, Any]:
        async with self.session.post(f"{self.url}/{path}", data=body) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if answer.status == 200 else text

    async def ask(self, path: str, document: Mapping[str, Any], **request: Any) -> dict[str, Any]:
        asked = {"uid": "u", "object": document, "namespace": "default", "operation": "CREATE", **request}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
        status, answer = await self.post(path, json.dumps(review).encode())
        assert status == 200, answer
        response: dict[str, Any] = answer["response"]
        assert response["uid"] == "u"
        return response


@pytest.fixture
async def endpoint(tmp_path: pathlib.Path) -> AsyncIterator[_Endpoint]:
    files = certificates.ensure(tmp_path / "certificates", hosts=["127.0.0.1"], now=datetime.now(UTC))
    async with queues.queues() as cluster:
        surroundings = Surroundings(cluster.client)
        component = QueueingComponent(surroundings)
        made = webhookendpoint.WebhookEndpoint(addresses.Address("127.0.0.1", 0), files)
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(files.authority)))
        async with surroundings.informers as informers, aiohttp.ClientSession(connector=connector) as session:
            await informers.wait_synced()
            task = asyncio.create_task(made.serve(component.reviews, clock=clock.SystemClock()))
            started = _Endpoint(made.address.url, files.authority, session)
            await _listening(started)
            yield started
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _listening(endpoint: _Endpoint) -> None:
    async def answers() -> bool:
        try:
            await endpoint.post("nowhere", b"")
        except aiohttp.ClientConnectorError:
            return False
        return True

    await patience.until_async(answers, what="the endpoint listens")


def _job(labels: Mapping[str, str]) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c"}]}}
    metadata = {"name": "train", "namespace": "default", "labels": dict(labels)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


async def test_objects_are_completed_and_refused(endpoint: _Endpoint) -> None:
    held = await endpoint.ask("mutate-batch-v1-job", _job(_QUEUE))
    assert held["allowed"] is True
    (change,) = json.loads(base64.b64decode(held["patch"]))
    assert (change["path"], change["value"]["suspend"]) == ("/spec", True)
    assert await endpoint.ask("mutate-batch-v1-job", _job({})) == {"uid": "u", "allowed": True}

    refused = await endpoint.ask("validate-batch-v1-job", _job({"kueue.x-k8s.io/queue-name": "not_a_name"}))
    assert (refused["allowed"], refused["status"]["code"]) == (False, 403)
    assert refused["status"]["message"].startswith("metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value")
    moved = await endpoint.ask("validate-batch-v1-job", _job(_QUEUE), oldObject=_job({}), operation="UPDATE")
    assert "field is immutable" in moved["status"]["message"]

    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "f"}}
    kept = await endpoint.ask("mutate-kueue-x-k8s-io-v1beta2-resourceflavor", flavor, namespace="")
    (change,) = json.loads(base64.b64decode(kept["patch"]))
    assert change["value"]["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]

    for body in (
        b"{",
        b'{"apiVersion": "admission.k8s.io/v1"}',
        b'{"apiVersion": "admission.k8s.io/v1", "request": {}}',
    ):
        assert (await endpoint.post("mutate-batch-v1-job", body))[0] == 400


def test_manifests_name_what_the_configuration_queues() -> None:
    made = webhookendpoint.manifests("https://host:1", b"authority", frozenset({"pod"}))
    paths = [each["clientConfig"]["url"] for of in made for each in of["webhooks"]]
    kinds = ("clusterqueue", "resourceflavor", "workload")
    assert paths == [
        *(f"https://host:1/mutate-kueue-x-k8s-io-v1beta2-{each}" for each in kinds),
        "https://host:1/mutate--v1-pod",
        *(f"https://host:1/validate-kueue-x-k8s-io-v1beta2-{each}" for each in (kinds[0], "cohort", *kinds[1:])),
        "https://host:1/validate--v1-pod",
    ]
    workload = next(each for each in made[1]["webhooks"] if each["name"] == "vworkload.kb.io")
    assert workload["rules"][0]["resources"] == ["workloads", "workloads/status"]
    assert made[1]["webhooks"][-1]["namespaceSelector"]["matchExpressions"][0]["values"] == [
        "kube-system",
        "kueue-system",
    ]


def test_manifests_name_a_service() -> None:
    service = webhookplace.Service.parse("kueue-system/webhooks:9443")
    made = webhookendpoint.manifests(service, b"authority", frozenset())
    assert made[0]["webhooks"][0]["clientConfig"] == {
        "service": {
            "namespace": "kueue-system",
            "name": "webhooks",
            "port": 9443,
            "path": "/mutate-kueue-x-k8s-io-v1beta2-clusterqueue",
        },
        "caBundle": base64.b64encode(b"authority").decode(),
    }
    assert service.host == "webhooks.kueue-system.svc"
    assert webhookplace.Service.parse("a/b").port == 443


@pytest.mark.parametrize("text", ["name", "a/", "/b", "a/b:", "a/b:0", "a/b:65536", "a/b:x", "A/b"])
def test_other_names_of_services_are_refused(text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=f"^service '{text}': "):
        webhookplace.Service.parse(text)


async def test_a_replica_without_the_lease_answers_and_admits_nothing(tmp_path: pathlib.Path) -> None:
    files = certificates.ensure(tmp_path / "certificates", hosts=["127.0.0.1"], now=datetime.now(UTC))
    name = lease.LeaseName("kueue-system", "c1f6bfd2.kueue.x-k8s.io")
    async with queues.queues(has_webhooks=False) as cluster:
        await cluster.create_queue(cpu=2)
        await cluster.kill("queueing")
        held = {"holderIdentity": "leader", "leaseDurationSeconds": 3600, "renewTime": _time(cluster)}
        document = queues.made("Lease", name.name, held, namespace=name.namespace)
        await cluster.client.create_document(leases.Lease, {**document, "apiVersion": "coordination.k8s.io/v1"})
        surroundings = Surroundings(cluster.client, clock=cluster.clock)
        made = webhookendpoint.WebhookEndpoint(addresses.Address("127.0.0.1", 0), files)
        built = functools.partial(queueing.replica, configured=ActiveConfiguration(), endpoint=made)
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(files.authority)))
        async with surroundings.informers, aiohttp.ClientSession(connector=connector) as session:
            task = asyncio.create_task(standalone.work(built, surroundings, name))
            started = _Endpoint(made.address.url, files.authority, session)
            await _listening(started)
            suspended = await started.ask("mutate-batch-v1-job", _job(_QUEUE))
            assert suspended["allowed"] is True
            assert "patch" in suspended
            await cluster.create_job("train")
            assert not await cluster.is_suspended("train")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _time(cluster: queues.Queues) -> str:
    return cluster.clock.utc().isoformat(timespec="microseconds").replace("+00:00", "Z")


def _queue(version: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "ClusterQueue",
        "metadata": {"name": "q", "uid": "u"},
        "spec": spec,
    }


async def _converted(endpoint: _Endpoint, desired: str, *documents: Any) -> dict[str, Any]:
    request = {"uid": "r", "desiredAPIVersion": desired, "objects": documents}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    status, answer = await endpoint.post("convert", json.dumps(review).encode())
    assert status == 200, answer
    assert answer["kind"] == "ConversionReview"
    response: dict[str, Any] = answer["response"]
    assert response["uid"] == "r"
    return response


async def test_versions_are_converted_without_losing_checks(endpoint: _Endpoint) -> None:
    older = _queue("v1beta1", cohort="c", admissionChecks=["quota-approval"])
    newer = await _converted(endpoint, "kueue.x-k8s.io/v1beta2", older)
    assert newer["result"] == {"status": "Success"}
    assert newer["convertedObjects"] == [
        _queue("v1beta2", cohortName="c", admissionChecksStrategy={"admissionChecks": [{"name": "quota-approval"}]})
    ]
    again = await _converted(endpoint, "kueue.x-k8s.io/v1beta1", *newer["convertedObjects"])
    assert again["convertedObjects"][0]["spec"]["cohort"] == "c"


async def test_conversions_that_make_no_sense_fail(endpoint: _Endpoint) -> None:
    response = await _converted(endpoint, "kueue.x-k8s.io/v9", _queue("v1beta1"))
    assert response["result"] == {
        "status": "Failure",
        "message": "ClusterQueue of kueue.x-k8s.io/v1beta1: cannot be converted to kueue.x-k8s.io/v9",
    }
    status, text = await endpoint.post("convert", b'{"kind": "Pod"}')
    assert (status, text) == (400, "expected a ConversionReview with a request")


def _definition(*, served: tuple[str, ...], conversion: dict[str, Any] | None = None) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": name in served, "storage": name == "v1beta2", "schema": schema}
        for name in ("v1beta1", "v1beta2")
    ]
    names = {
        "plural": "clusterqueues",
        "singular": "clusterqueue",
        "kind": "ClusterQueue",
        "listKind": "ClusterQueueList",
    }
    spec = {"group": "kueue.x-k8s.io", "scope": "Cluster", "names": names, "versions": versions}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusterqueues.kueue.x-k8s.io"},
        "spec": spec if conversion is None else {**spec, "conversion": conversion},
    }


@pytest.mark.parametrize(
    ("served", "with_conversion", "is_refused"),
    [
        pytest.param(("v1beta1", "v1beta2"), False, True, id="both-without-conversion"),
        pytest.param(("v1beta1", "v1beta2"), True, False, id="both-with-conversion"),
        pytest.param(("v1beta2",), False, False, id="one-version"),
    ],
)
async def test_definitions_that_lose_checks_are_refused(
    served: tuple[str, ...], with_conversion: bool, is_refused: bool, tmp_path: pathlib.Path
) -> None:
    files = certificates.ensure(tmp_path, hosts=["127.0.0.1"], now=datetime.now(UTC))
    [printed, *_] = conversionwebhook.manifests("https://127.0.0.1:9443", files.authority.read_bytes())
    conversion = printed["spec"]["conversion"] if with_conversion else None
    async with embedded.server(memory.MemoryStore()) as server:
        definitions = target.metadata_of(
            "apiextensions.k8s.io",
            "v1",
            plural="customresourcedefinitions",
            kind="CustomResourceDefinition",
            namespaced=False,
        )
        await server.client.create_document(definitions, _definition(served=served, conversion=conversion))
        check = conversionwebhook.check_definitions(Surroundings(server.client))
        if not is_refused:
            await check
            return
        with pytest.raises(errors.InvalidValueError, match="loses its admissionChecks"):
            await check


async def test_other_reviews_are_answered_while_a_large_one_is_decided(
    endpoint: _Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, is_other_answered = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    convert = conversionwebhook.review
    waits = []

    def convert_slowly(body: Mapping[str, Any]) -> dict[str, Any]:
        loop.call_soon_threadsafe(has_begun.set)
        waits.append(is_other_answered.wait(timeout=_LONG_SECONDS))
        return convert(body)

    monkeypatch.setattr(conversionwebhook, "review", convert_slowly)
    older = _queue("v1beta1", cohort="c")
    older["metadata"]["annotations"] = {"long": "x" * lanes.LARGE}
    converting = asyncio.create_task(_converted(endpoint, "kueue.x-k8s.io/v1beta2", older))
    begun = asyncio.create_task(has_begun.wait())
    await asyncio.wait((begun, converting), timeout=patience.SECONDS, return_when=asyncio.FIRST_COMPLETED)
    assert not converting.done(), converting.result()
    assert await endpoint.ask("mutate-batch-v1-job", _job({})) == {"uid": "u", "allowed": True}
    is_other_answered.set()
    assert (await converting)["convertedObjects"][0]["spec"] == {"cohortName": "c"}
    assert waits == [True]


async def test_a_large_review_reads_the_caches_on_the_event_loop(endpoint: _Endpoint) -> None:
    large = _job(_QUEUE)
    large["metadata"]["annotations"] = {"long": "x" * lanes.LARGE}
    held = await endpoint.ask("mutate-batch-v1-job", large)
    (change,) = json.loads(base64.b64decode(held["patch"]))
    assert (change["path"], change["value"]["suspend"]) == ("/spec", True)
    moved = await endpoint.ask("validate-batch-v1-job", large, oldObject=_job({}), operation="UPDATE")
    assert "field is immutable" in moved["status"]["message"]
