"""Defragmentation of a running cluster: pods move by evictions, and the first surprise ends the moves."""

from __future__ import annotations

import asyncio

import pytest

from drachma import testing
from drachma.api import devicetaintrule, pod
from drachma.client import Selection
from drachma.simulate import Simulation, livecluster
from drachma.simulate.defragmentation import Carrier, Goal, Plan, Planner, SurpriseError, wholes
from drachma.testing.clusters import Cluster

OBJECTS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev, count: 3}}]}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: serve}
spec:
  replicas: 3
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]
      containers: [{name: c, image: serve, resources: {claims: [{name: gpu}]}}]
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: serve}}
"""


async def serving(cluster: Cluster) -> list[pod.Pod]:
    return list((await cluster.client.list(pod.Pod, Selection(namespace="default"))).items)


async def spread(cluster: Cluster) -> Plan:
    """Run three pods on three nodes, and return the plan that brings back nodes."""
    await cluster.apply(OBJECTS)
    for each in await serving(cluster):
        await cluster.pod(str(each.metadata.name)).running()
    assert len({each.spec.node_name for each in await serving(cluster)}) == 3
    return Planner(Simulation(await livecluster.read(cluster.client)), Goal.NODES).plan()


async def carry_out(cluster: Cluster, plan: Plan, *, patience: float = 60.0) -> list[str]:
    lines: list[str] = []
    carrier = Carrier(cluster.client, clock=cluster.clock, patience=patience, report=lines.append)
    task = asyncio.create_task(carrier.carry_out(plan))
    try:
        await cluster.until(task.done, lambda: f"the moves are not made: {lines}", timeout=600)
        await task
    finally:
        assert not (await cluster.client.list(devicetaintrule.DeviceTaintRule)).items
    return lines


async def test_moves_bring_back_a_node() -> None:
    async with testing.cluster(nodes=3, profile="gpu-server") as cluster:
        plan = await spread(cluster)
        assert len(plan.brought_back) == 1
        lines = await carry_out(cluster, plan)
        assert len(lines) == len(plan.moves) == 1
        assert lines[0].endswith(f"{plan.brought_back[0].title} is whole again (12 devices)")
        snapshot = Simulation(await livecluster.read(cluster.client)).snapshot
        users = wholes.users(snapshot)
        free = [each.node for each in wholes.find(snapshot, Goal.NODES) if users.is_free(each)]
        assert free == [plan.brought_back[0].node]
        pods = await serving(cluster)
        assert len(pods) == 3
        assert all(each.status.phase == "Running" for each in pods)


async def test_a_budget_that_allows_nothing_ends_the_moves() -> None:
    async with testing.cluster(nodes=3, profile="gpu-server") as cluster:
        plan = await spread(cluster)
        await cluster.apply(
            "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: all}, "
            "spec: {minAvailable: 3, selector: {matchLabels: {app: serve}}}}"
        )
        before = {each.metadata.uid for each in await serving(cluster)}
        with pytest.raises(SurpriseError, match="cannot be evicted: Cannot evict pod as it would violate"):
            await carry_out(cluster, plan, patience=20)
        assert {each.metadata.uid for each in await serving(cluster)} == before


async def test_a_pod_that_is_gone_ends_the_moves() -> None:
    async with testing.cluster(nodes=3, profile="gpu-server") as cluster:
        plan = await spread(cluster)
        gone = plan.moves[0].pod
        await cluster.delete(pod.Pod, str(gone.metadata.name))
        await cluster.pod(str(gone.metadata.name)).gone()
        with pytest.raises(SurpriseError, match=rf"^pod default/{gone.metadata.name} is gone$"):
            await carry_out(cluster, plan)
