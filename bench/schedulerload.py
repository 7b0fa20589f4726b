"""The load of :mod:`bench.schedulers` on any Kubernetes API server: nodes with devices, pods with claims, clearing up.

No controllers are needed: what they would have to do first is done here.
"""

from __future__ import annotations

import contextlib
import functools
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from drachma import errors
from drachma.api import node, pod, resourceclaim
from drachma.cli.benchmark import objects, plainpods, preparation
from drachma.client import backoff, http, patches, protocol, target, transport
from drachma.runtime import clock

PLACE = "bench-schedulers"
SELECTION = protocol.Selection(PLACE)
CREATORS = 16

_SERVICE_ACCOUNT = target.metadata_of("", "v1", plural="serviceaccounts", kind="ServiceAccount", namespaced=True)
_SLICE_DEVICES = 100

Answers = Counter[tuple[str, str, int]]
"""How often a server gave an answer: by verb, resource with subresource, and code."""


class Cluster(NamedTuple):
    """How many nodes, and how many devices: of each node, or of the network in all."""

    nodes: int
    devices: int
    is_network: bool


async def prepare(client: http.HttpClient, cluster: Cluster) -> None:
    """Nodes and devices; a service account, which upstream's server wants before it takes pods."""
    await _if_absent(preparation.create(client, objects.namespace(PLACE)))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": PLACE}}
    await _if_absent(client.create_document(_SERVICE_ACCOUNT, account))
    await _if_absent(preparation.create(client, objects.device_class()))
    nodes = range(cluster.nodes)
    await preparation.run_concurrently(functools.partial(_add_node, client, number) for number in nodes)
    slices = (
        _network_slices(cluster.devices) if cluster.is_network else [_slice(each, cluster.devices) for each in nodes]
    )
    if cluster.devices:
        await preparation.run_concurrently(functools.partial(_create, client, each) for each in slices)


async def _create(client: http.HttpClient, document: objects.Document) -> None:
    await _if_absent(preparation.create(client, document))


async def _if_absent(made: Awaitable[object]) -> None:
    with contextlib.suppress(errors.ObjectExistsError):
        await made


async def _add_node(client: http.HttpClient, number: int) -> None:
    document = objects.node(number, {})
    name = document["metadata"]["name"]
    await _create(client, document)
    # Upstream's server taints new nodes, for a controller to take that back.
    await client.patch(node.Node, name, patch=patches.merge({"spec": {"taints": None}}))
    await client.patch(node.Node, name, patch=patches.merge({"status": document["status"]}), subresource="status")


def _slice(number: int, devices: int) -> objects.Document:
    (published,) = objects.plain_slices(number)
    first = published["spec"]["devices"][0]
    published["spec"]["devices"] = [{**first, "name": f"device-{index}"} for index in range(devices)]
    return published


def _network_slices(devices: int) -> list[objects.Document]:
    """One pool that all nodes can reach."""
    starts = range(0, devices, _SLICE_DEVICES)
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"network-{start}"},
            "spec": {
                "driver": objects.DRIVER,
                "allNodes": True,
                "pool": {"name": "network", "generation": 1, "resourceSliceCount": len(starts)},
                "devices": [
                    {"name": f"device-{place}"} for place in range(start, min(start + _SLICE_DEVICES, devices))
                ],
            },
        }
        for start in starts
    ]


async def create_claims(client: http.HttpClient, count: int) -> None:
    """One claim for every pod."""
    spec = objects.claim_spec()
    documents = [
        {**objects.claim(number, spec), "metadata": {"name": f"c{number}", "namespace": PLACE}}
        for number in range(count)
    ]
    await preparation.run_concurrently(functools.partial(preparation.create, client, each) for each in documents)


async def create_pods(
    client: http.HttpClient, count: int, note: Callable[[str], object], *, is_plain: bool = False
) -> None:
    """Create the pods in order, and note the name of each before it is sent."""

    async def create(number: int) -> None:
        name = f"p{number}"
        note(name)
        await preparation.create(client, _basic_pod(name) if is_plain else _pod(name, claim=f"c{number}"))

    await preparation.run_concurrently((functools.partial(create, number) for number in range(count)), limit=CREATORS)


async def create_plain_pods(client: http.HttpClient, count: int) -> None:
    """A few pods without claims, to see whether anybody is there."""
    for number in range(count):
        await preparation.create(client, _pod(f"plain-{number}", claim=""))


def _basic_pod(name: str) -> objects.Document:
    """Return a pod of upstream's SchedulingBasic."""
    made = plainpods.pod(PLACE, 0)
    made["metadata"] = {"name": name, "namespace": PLACE}
    return made


def _pod(name: str, *, claim: str) -> objects.Document:
    made = objects.pod(PLACE, 0)
    made["metadata"] = {"name": name, "namespace": PLACE}
    if claim:
        made["spec"]["resourceClaims"] = [{"name": "resource", "resourceClaimName": claim}]
    else:
        del made["spec"]["resourceClaims"], made["spec"]["containers"][0]["resources"]
    return made


async def clear(client: http.HttpClient) -> None:
    """Takes away all pods and claims."""
    pods = (await client.list(pod.Pod, SELECTION)).items
    await preparation.run_concurrently(functools.partial(_delete_pod, client, each) for each in pods)
    claims = (await client.list(resourceclaim.ResourceClaim, SELECTION)).items
    await preparation.run_concurrently(functools.partial(_delete_claim, client, each) for each in claims)


async def _delete_pod(client: http.HttpClient, gone: pod.Pod) -> None:
    await client.delete(pod.Pod, gone.metadata.name, namespace=PLACE, grace_period_seconds=0)


async def _delete_claim(client: http.HttpClient, gone: resourceclaim.ResourceClaim) -> None:
    kind, name = resourceclaim.ResourceClaim, gone.metadata.name
    freed = patches.merge({"status": {"allocation": None, "reservedFor": None}})
    await client.patch(kind, name, namespace=PLACE, subresource="status", patch=freed)
    await client.patch(kind, name, namespace=PLACE, patch=patches.merge({"metadata": {"finalizers": None}}))
    await client.delete(kind, name, namespace=PLACE)


async def doubles(client: http.HttpClient) -> int:
    """How many devices are in more than one claim."""
    claims = (await client.list(resourceclaim.ResourceClaim, SELECTION)).items
    held = Counter(
        (result.driver, result.pool, result.device)
        for each in claims
        if each.status.allocation is not None
        for result in each.status.allocation.devices.results
    )
    return sum(count > 1 for count in held.values())


async def answers(client: http.HttpClient) -> Answers:
    """What the server says that it answered so far."""
    asking = transport.Transport(
        client.access, clock=clock.SystemClock(), retries=backoff.Retries(), rng=random.Random(), timeout_seconds=60
    )
    request = transport.Request(method="GET", path="/metrics", accept="text/plain", is_idempotent=True)
    try:
        text = (await asking.send(request)).decode()
    finally:
        await asking.close()
    counts: Answers = Counter()
    for line in text.splitlines():
        if line.startswith("apiserver_request_total{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            what = "/".join(filter(None, (labels["resource"], labels["subresource"])))
            counts[labels["verb"], what, int(labels["code"])] += int(float(line.rpartition(" ")[2]))
    return counts
