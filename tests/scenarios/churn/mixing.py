"""A cluster in which drivers and claims of v1 and of v1alpha2 live side by side, on the same nodes and devices."""

import contextlib
import pathlib
from typing import Any

import msgspec

from drachma import errors
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.api.v1alpha2 import resourceslice as alpha_slice
from drachma.client import patches
from tests import firstalpha
from tests.scenarios import controlplane
from tests.scenarios.churn import churning, invariants, world

ALPHA = "resource.k8s.io/v1alpha2"
CARD = "card.example.com"
RESOURCES = {CARD: ("card-0", "card-1"), world.GPU: ("gpu-0", "gpu-1", "gpu-2", "old-0")}
"""What drivers publish in v1alpha2 on each node; most of the GPUs are in v1 too."""

CLASSES = {"cards": CARD, "gpus": world.GPU, "zonal-cards": CARD}
PARAMETERS: dict[str, world.Document] = {
    "one-card": {"requests": [(CARD, ['attributes["memory"] >= "16Gi"'])]},
    "large-card": {"requests": [(CARD, ['attributes.quantity["memory"].isGreaterThan(quantity("16Gi"))'])]},
    "shared-card": {"requests": [(CARD, ["true"])], "shareable": True},
    "two-gpus": {"requests": [(world.GPU, ["true", "true"])]},
    "card-and-gpu": {"requests": [(CARD, ["true"]), (world.GPU, ['attributes.string["model"] == "old"'])]},
}
REFERRED = (
    *(("ResourceClass", name) for name in CLASSES),
    *(("ResourceClaimParameters", name) for name in PARAMETERS),
    ("ResourceClassParameters", "filter"),
)
"""What claims refer to, by kind and name."""

CLAIMS = ("alpha-0", "alpha-1", "alpha-2", "shared-0")
"""The last one may be in the way of a claim of v1, or find one in its own."""


class MixedChurn(churning.Churn):
    """A run in which half of what happens is about v1alpha2."""

    gates = firstalpha.GATES

    def __init__(self, plane: controlplane.ControlPlane, seed: int, *, records: pathlib.Path | None = None) -> None:
        super().__init__(plane, seed, records=records)
        self._templates += [*PARAMETERS] * 3
        self._claim_names += [*CLAIMS] * 3
        self._acts += [
            (8, self._create_alpha_claim),
            (5, self._delete_alpha_claim),
            (4, self._offer),
            (3, self._withdraw_offer),
            (4, self._change_offer),
            (8, self._go_over),
            (2, self._forget),
            (6, self._restore),
        ]

    async def prepare(self) -> None:
        """The cluster of v1, and what there is of v1alpha2 beside it."""
        await super().prepare()
        await self._restore()
        for name in PARAMETERS:
            await self._create(template(name))
        for number in range(0, world.NODES, 2):
            for driver in RESOURCES:
                await self._create(node_slice(driver, world.node_name(number), RESOURCES[driver]))

    async def _state(self) -> invariants.State:
        state = await super()._state()
        claims = (await self.client.list(alpha.ResourceClaim)).items
        slices = (await self.client.list(alpha_slice.NodeResourceSlice)).items
        return msgspec.structs.replace(
            state, alpha_claims={each.metadata.name: each for each in claims}, node_slices=slices
        )

    # Claims and what they refer to

    async def _create_alpha_claim(self) -> str:
        name, wish = self.chance.choice(CLAIMS), self.chance.choice(list(PARAMETERS))
        mode = self.chance.choice((alpha.WAIT_FOR_FIRST_CONSUMER, alpha.WAIT_FOR_FIRST_CONSUMER, alpha.IMMEDIATE))
        class_name = "zonal-cards" if self.chance.random() < 0.2 else "cards"
        await self._create(claim(name, wish, class_name=class_name, mode=mode))
        return f"create claim {name} of v1alpha2: {wish} of {class_name}, {mode}"

    async def _delete_alpha_claim(self) -> str:
        chosen = self._any((await self.client.list(alpha.ResourceClaim)).items)
        if chosen is None:
            return "no claim of v1alpha2 to delete"
        await self.client.delete(alpha.ResourceClaim, chosen.metadata.name, namespace="default")
        return f"delete claim {chosen.metadata.name} of v1alpha2"

    async def _forget(self) -> str:
        """Something that claims refer to goes: those that are not allocated have to wait."""
        kind, name = self.chance.choice(REFERRED)
        place = "default" if kind == "ResourceClaimParameters" else ""
        await self.client.delete(self._resources[ALPHA, kind], name, namespace=place)
        return f"delete {kind} {name}"

    async def _restore(self) -> str:
        for kind, name in REFERRED:
            with contextlib.suppress(errors.ObjectExistsError):
                await self._create(referred(kind, name))
        return "all that claims refer to is there"

    # What drivers publish

    async def _offer(self) -> str:
        driver, on = self._driver_and_node()
        await self._create(node_slice(driver, on, RESOURCES[driver]))
        return f"offer {driver} on {on} in v1alpha2"

    async def _withdraw_offer(self) -> str:
        driver, on = self._driver_and_node()
        await self.client.delete(alpha_slice.NodeResourceSlice, f"{on}-{driver}")
        return f"withdraw {driver} on {on} in v1alpha2"

    async def _change_offer(self) -> str:
        """A driver has fewer resources, perhaps fewer than are allocated, or has them back."""
        driver, on = self._driver_and_node()
        left = tuple(name for name in RESOURCES[driver] if self.chance.random() < 0.6)
        spec = node_slice(driver, on, left)["spec"]
        patch = patches.merge({"spec": spec})
        await self.client.patch(alpha_slice.NodeResourceSlice, f"{on}-{driver}", patch=patch)
        return f"offer {left} of {driver} on {on} in v1alpha2"

    async def _go_over(self) -> str:
        """The driver of GPUs on a node no longer publishes them in v1, or begins to."""
        on = world.node_name(self.chance.randrange(world.NODES))
        name = world.slice_name(world.GPU, on)
        if name in self._published:
            await self._withdraw(name)
            return f"GPUs of {on} are in v1alpha2 only"
        await self._publish(name)
        return f"GPUs of {on} are in v1 too"

    def _driver_and_node(self) -> tuple[str, str]:
        return self.chance.choice(list(RESOURCES)), world.node_name(self.chance.randrange(world.NODES))


# Objects


def referred(kind: str, name: str) -> world.Document:
    match kind:
        case "ResourceClass":
            return a_class(name)
        case "ResourceClaimParameters":
            return claim_parameters(name)
        case _:
            return class_parameters()


def a_class(name: str) -> world.Document:
    reference = {"apiGroup": "resource.k8s.io", "kind": "ResourceClassParameters", "name": "filter"}
    made = _document("ResourceClass", name, driverName=CLASSES[name], structuredParameters=True)
    if name == "zonal-cards":
        expression = {"key": "zone", "operator": "In", "values": ["a"]}
        return {**made, "suitableNodes": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return made if name == "gpus" else {**made, "parametersRef": reference}


def class_parameters() -> world.Document:
    selector = 'attributes["memory"] <= "64Gi"'
    entry = {"driverName": CARD, "namedResourcesWithAttributes": {"selector": selector}}
    return _document("ResourceClassParameters", "filter", filters=[entry])


def claim_parameters(name: str) -> world.Document:
    wish = PARAMETERS[name]
    requests = [
        {"driverName": driver, "namedResourcesWithAttributes": {"required": [{"selector": each} for each in selectors]}}
        for driver, selectors in wish["requests"]
    ]
    made = _document("ResourceClaimParameters", name, "default", requests=requests)
    return {**made, "shareable": True} if wish.get("shareable") else made


def claim_spec(wish: str, *, class_name: str, mode: str) -> world.Document:
    reference = {"apiGroup": "resource.k8s.io", "kind": "ResourceClaimParameters", "name": wish}
    return {"resourceClassName": class_name, "parametersRef": reference, "allocationMode": mode}


def claim(name: str, wish: str, *, class_name: str, mode: str) -> world.Document:
    spec = claim_spec(wish, class_name=class_name, mode=mode)
    return _document("ResourceClaim", name, "default", spec=spec)


def template(wish: str) -> world.Document:
    spec = claim_spec(wish, class_name="gpus", mode=alpha.WAIT_FOR_FIRST_CONSUMER)
    return _document("ResourceClaimTemplate", wish, "default", spec={"spec": spec})


def node_slice(driver: str, on: str, names: tuple[str, ...]) -> world.Document:
    resources = [
        {
            "name": name,
            "attributes": [
                {"name": "memory", "quantity": "32Gi" if name.endswith("1") else "16Gi"},
                {"name": "model", "string": name.partition("-")[0]},
            ],
        }
        for name in names
    ]
    spec = {"nodeName": on, "driverName": driver, "namedResourcesWithAttributes": resources}
    return _document("NodeResourceSlice", f"{on}-{driver}", spec=spec)


def _document(kind: str, name: str, namespace: str = "", **content: Any) -> world.Document:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": ALPHA, "kind": kind, "metadata": metadata, **content}
