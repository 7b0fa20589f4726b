"""The churn: one random operation after the other, while components run, are killed and are started again."""

import asyncio
import pathlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

from drachma import errors
from drachma.api import devicetaintrule, gates, node, pod, resourceclaim, resourceslice
from drachma.client import Client, patches
from drachma.testing import manualclock
from tests.scenarios import controlplane, lateclient
from tests.scenarios.churn import invariants, world
from tests.scenarios.churn.violation import ViolationError

Claim = resourceclaim.ResourceClaim

SCHEDULERS = 3
MOST_PODS = 40
NAMED_CLAIMS = 4
GRACE_ROUNDS = 8
REST_SECONDS = 60.0

_IN_VAIN = (errors.ForbiddenError, errors.ObjectConflictError, errors.ObjectExistsError, errors.ObjectNotFoundError)
"""How random operations may fail: what they are about is gone, is there already, or has changed."""


class Churn:
    """One run, of a cluster with claims and drivers of v1."""

    gates = gates.ALL

    def __init__(self, plane: controlplane.ControlPlane, seed: int, *, records: pathlib.Path | None = None) -> None:
        """With ``records``, a folder, every scheduler records its decisions there."""
        self.plane = plane
        self._records = records
        self.client = plane.client
        self.chance = random.Random(seed)
        self.operations = 0
        self.history: list[str] = []
        self._numbers = iter(range(10**9))
        self._generation = 1
        self._missing: set[str] = set()
        self._published: set[str] = set()
        self._withdrawn: set[str] = set()
        self._unpublished: frozenset[str] = frozenset()
        self._resources: dict[tuple[str, str], Any] = {}
        self._templates = list(world.WISHES)
        self._claim_names = [f"shared-{number}" for number in range(NAMED_CLAIMS)]
        self._acts: list[tuple[int, Callable[[], Awaitable[str]]]] = [
            (30, self._create_pod),
            (14, self._delete_pod),
            (10, self._finish_pod),
            (10, self._reap),
            (5, self._create_claim),
            (4, self._delete_claim),
            (2, self._delete_node),
            (4, self._create_node),
            (4, self._republish),
            (2, self._withdraw_slice),
            (4, self._publish_slice),
            (3, self._toggle_gpu),
            (3, self._toggle_taint),
            (3, self._kill_scheduler),
            (5, self._start_scheduler),
            (1, self._restart_controllers),
        ]

    async def prepare(self) -> None:
        """The cluster before anything happens to it."""
        for each in await self.client.resources():
            self._resources |= {(each.api_version(version), each.kind): each for version in each.versions}
        await self._create(world.priority_class())
        for name in world.CLASSES:
            await self._create(world.device_class(name))
        for name in world.WISHES:
            await self._create(world.template(name))
        for number in range(world.NODES):
            await self._create(world.node(number))
        for name, document in world.slices(self._generation).items():
            await self._create(document)
            self._published.add(name)
        for number in range(SCHEDULERS):
            self._launch_scheduler(f"scheduler-{number}")
            await self.plane.settle()

    async def run(self, operations: int, *, every: int = 3) -> None:
        """So many operations; what must always hold is checked after every few of them."""
        weights = [weight for weight, _ in self._acts]
        while self.operations < operations:
            ((_, act),) = self.chance.choices(self._acts, weights)
            try:
                done = await act()
            except _IN_VAIN as error:
                done = f"in vain: {error}"
            self.operations += 1
            self._note(done)
            await self._let_happen()
            if self.operations % every == 0:
                invariants.check_always(await self._state())

    async def come_to_rest(self) -> invariants.State:
        """Nothing happens to the cluster any more; everybody runs until there is nothing left to do."""
        if "controllers" not in self.plane.running:
            await self.plane.start_controllers()
        while len(self._schedulers()) < 2:
            await self._start_scheduler()
        for _ in range(GRACE_ROUNDS):
            await self.plane.advance(REST_SECONDS)
            if not await self._terminating():
                break
            while await self._terminating():
                await self._reap()
        await self.plane.advance(REST_SECONDS)
        return await self._state()

    async def _state(self) -> invariants.State:
        """All objects, and which claims have devices that were not published at some time."""
        self._unpublished |= {
            claim.metadata.uid
            for claim in (await self.client.list(Claim)).items
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results
            if world.slice_name(result.driver, result.pool) in self._withdrawn
        }
        self._withdrawn -= self._published
        return await invariants.State.read(self.client, self._unpublished)

    # How operations and components mix

    async def _let_happen(self) -> None:
        """Gives components anything from no time at all to many seconds."""
        draw = self.chance.random()
        if draw < 0.3:
            return
        if draw < 0.7:
            for _ in range(self.chance.randrange(1, 60)):
                await asyncio.sleep(0)
        elif draw < 0.95:
            await self.plane.advance(self.chance.uniform(0, 3))
        else:
            await self.plane.advance(self.chance.uniform(3, 60))

    def _note(self, what: str) -> None:
        self.history.append(f"{self.operations}: {what}")
        del self.history[:-200]

    # Pods and claims

    async def _pods(self) -> list[pod.Pod]:
        return list((await self.client.list(pod.Pod)).items)

    async def _create_pod(self) -> str:
        if len(await self._pods()) >= MOST_PODS:
            return await self._delete_pod()
        name = f"p{next(self._numbers)}"
        templates = self.chance.choices(self._templates, k=self.chance.choice((0, 1, 1, 1, 2)))
        claims = [self.chance.choice(self._claim_names)] if self.chance.random() < 0.25 else []
        cpu = self.chance.choice((0, 0, 500, 1000, 2000, 4000))
        is_urgent = self.chance.random() < 0.1
        await self._create(world.pod(name, cpu=cpu, templates=templates, claims=claims, is_urgent=is_urgent))
        return f"create pod {name}: {cpu}m {templates} {claims}{' urgent' if is_urgent else ''}"

    async def _delete_pod(self) -> str:
        chosen = self._any(await self._pods())
        if chosen is None:
            return "no pod to delete"
        grace = self.chance.choice((0, 0, 0, 30))
        await self.client.delete(pod.Pod, chosen.metadata.name, namespace="default", grace_period_seconds=grace)
        return f"delete pod {chosen.metadata.name} with {grace} s"

    async def _finish_pod(self) -> str:
        chosen = self._any([each for each in await self._pods() if each.spec.node_name])
        if chosen is None:
            return "no pod to finish"
        await self.plane.patch_status(chosen, {"phase": self.chance.choice(("Succeeded", "Failed"))})
        return f"finish pod {chosen.metadata.name}"

    async def _terminating(self) -> list[pod.Pod]:
        return [each for each in await self._pods() if each.metadata.deletion_timestamp is not None]

    async def _reap(self) -> str:
        """What a node agent does with a pod that is to go."""
        chosen = self._any(await self._terminating())
        if chosen is None:
            return "no pod to reap"
        await self.client.delete(pod.Pod, chosen.metadata.name, namespace="default", grace_period_seconds=0)
        return f"reap pod {chosen.metadata.name}"

    async def _create_claim(self) -> str:
        name, wish = f"shared-{self.chance.randrange(NAMED_CLAIMS)}", self.chance.choice(list(world.WISHES))
        await self._create(world.claim(name, wish))
        return f"create claim {name}: {wish}"

    async def _delete_claim(self) -> str:
        chosen = self._any((await self.client.list(Claim)).items)
        if chosen is None:
            return "no claim to delete"
        await self.client.delete(Claim, chosen.metadata.name, namespace="default")
        return f"delete claim {chosen.metadata.name}"

    # Nodes and devices

    async def _delete_node(self) -> str:
        name = world.node_name(self.chance.randrange(world.NODES))
        await self.client.delete(node.Node, name)
        return f"delete node {name}"

    async def _create_node(self) -> str:
        number = self.chance.randrange(world.NODES)
        await self._create(world.node(number))
        return f"create node {number}"

    async def _republish(self) -> str:
        """A driver comes up with a new generation of a pool; its other slices follow later, or never."""
        name = self._any(sorted(self._published))
        if name is None:
            return "no slice to republish"
        self._generation += 1
        await self._put_slice(name)
        return f"republish slice {name}, generation {self._generation}"

    async def _publish_slice(self) -> str:
        name = self._any(sorted(world.slices(0)))
        assert name is not None
        if name in self._published:
            # Whatever is at hand of a pool gets the newest generation, so that pools become whole again.
            await self._put_slice(name)
            return f"renew slice {name}"
        await self._publish(name)
        return f"publish slice {name}"

    async def _withdraw_slice(self) -> str:
        name = self._any(sorted(self._published))
        if name is None:
            return "no slice to withdraw"
        await self._withdraw(name)
        return f"withdraw slice {name}"

    async def _toggle_gpu(self) -> str:
        """A GPU falls off the bus, or is found again."""
        on = world.node_name(self.chance.randrange(world.NODES))
        self._missing ^= {f"{on}/gpu-{self.chance.randrange(4)}"}
        name = f"{on}-gpu"
        if name in self._published:
            self._generation += 1
            await self._put_slice(name)
        return f"GPUs missing: {sorted(self._missing)}"

    async def _toggle_taint(self) -> str:
        existing = (await self.client.list(devicetaintrule.DeviceTaintRule)).items
        if len(existing) > 2 or (existing and self.chance.random() < 0.5):
            gone = self.chance.choice(existing).metadata.name
            await self.client.delete(devicetaintrule.DeviceTaintRule, gone)
            return f"delete taint rule {gone}"
        name = f"rule-{next(self._numbers)}"
        on = world.node_name(self.chance.randrange(world.NODES))
        effect = self.chance.choice(("NoSchedule", "NoExecute"))
        device = f"gpu-{self.chance.randrange(4)}"
        await self._create(world.taint_rule(name, pool=on, device=device, effect=effect))
        return f"taint {on}/{device} {effect}"

    async def _publish(self, name: str) -> None:
        await self._create(self._slice(name))
        self._published.add(name)

    async def _withdraw(self, name: str) -> None:
        await self.client.delete(resourceslice.ResourceSlice, name)
        self._published.discard(name)
        self._withdrawn.add(name)

    async def _put_slice(self, name: str) -> None:
        document = self._slice(name)
        found = await self.client.get(resourceslice.ResourceSlice, name)
        patch = patches.merge({"spec": document["spec"]}, patches.unchanged(found))
        await self.client.patch(resourceslice.ResourceSlice, name, patch=patch)

    def _slice(self, name: str) -> world.Document:
        return world.slices(self._generation, frozenset(self._missing))[name]

    # Components

    def _schedulers(self) -> list[str]:
        return [label for label in self.plane.running if label != "controllers"]

    async def _kill_scheduler(self) -> str:
        label = self._any(self._schedulers())
        if label is None:
            return "no scheduler to kill"
        if self.chance.random() < 0.3:
            await self.plane.stop(label)
            return f"stop {label}"
        await self.plane.kill(label)
        return f"kill {label}"

    async def _start_scheduler(self) -> str:
        if len(self._schedulers()) >= SCHEDULERS:
            return "enough schedulers"
        label = f"scheduler-{next(self._numbers)}"
        self._launch_scheduler(label)
        return f"start {label}"

    def _launch_scheduler(self, label: str) -> None:
        record = None if self._records is None else self._records / label
        self.plane.launch_scheduler(label, has_peers=True, record=record)

    async def _restart_controllers(self) -> str:
        if "controllers" in self.plane.running:
            await self.plane.kill("controllers")
        self.plane.launch_controllers()
        return "restart controllers"

    # Both

    async def _create(self, document: world.Document) -> None:
        await self.client.create_document(self._resources[document["apiVersion"], document["kind"]], document)

    def _any(self, among: Any) -> Any:
        return self.chance.choice(list(among)) if among else None


async def run(
    seed: int,
    operations: int,
    *,
    kind: type[Churn] = Churn,
    records: pathlib.Path | None = None,
    late_seconds: float = 0.0,
) -> Churn:
    """A whole run, with everything checked; a violation tells the seed and what happened last.

    With ``late_seconds``, watches of all components report events up to that much late.
    """
    clock = manualclock.ManualClock()

    def wrap(client: Client) -> Client:
        return lateclient.late(client, seed=seed, clock=clock, seconds=late_seconds) if late_seconds else client

    async with controlplane.control_plane(schedulers=0, seed=seed, gates=kind.gates, clock=clock, wrap=wrap) as plane:
        churn = kind(plane, seed, records=records)
        await churn.prepare()
        try:
            await churn.run(operations)
            invariants.check_at_rest(await churn.come_to_rest())
        except ViolationError as violation:
            last = "\n".join(churn.history[-40:])
            where = f"{kind.__name__}, seed {seed}, operation {churn.operations}"
            raise ViolationError(f"{where}: {violation}\n{last}") from None
        return churn
