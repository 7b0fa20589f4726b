"""KEP-4381's first example, from a vendor's own kind of parameters to the card that a pod gets.

The manifests are those of ``examples/06-the-first-alpha``; the vendor's controller is made with the kit.
"""

import contextlib
import pathlib
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec

from drachma.api.v1alpha2 import parameters
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.client import patches, target
from drachma.driver import parameters as kit
from drachma.runtime import Surroundings, controller
from drachma.testing import node as a_node
from tests import firstalpha
from tests.scenarios import controlplane

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "06-the-first-alpha"
DRIVER = "cards.dra.example.com"

Version = Annotated[str, msgspec.Meta(pattern=r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$")]


class Sharing(msgspec.Struct, frozen=True):
    """How a card is shared; no business of the scheduler."""

    strategy: str = "Exclusive"


class CardSpec(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What the vendor's users write."""

    minimum_runtime_version: Version = "0.0.0"
    minimum_memory: str = "0"
    sharing: Sharing = Sharing()


class CardClassSpec(msgspec.Struct, rename="camel"):
    """What the vendor's administrators write."""

    maximum_memory: str


def wish(spec: CardSpec) -> kit.Wish:
    if spec.minimum_memory == "1Ti":
        raise ValueError("spec.minimumMemory: there are no such cards")
    version, memory = spec.minimum_runtime_version, spec.minimum_memory
    selector = f'attributes["runtimeVersion"] >= "{version}" && attributes["memory"] >= "{memory}"'
    return kit.Wish(requests=(kit.Request(DRIVER, (selector,)),))


def filters(spec: CardClassSpec) -> tuple[kit.Filter, ...]:
    return (kit.Filter(DRIVER, f'attributes["memory"] <= "{spec.maximum_memory}"'),)


CARDS = kit.ClaimKind(
    group="dra.example.com", version="v1alpha1", kind="CardParameters", plural="cardparameters", spec=CardSpec,
    resolve=wish,
)  # fmt: skip
CLASSES = kit.ClassKind(
    group="dra.example.com", version="v1alpha1", kind="CardClassParameters", plural="cardclassparameters",
    spec=CardClassSpec, resolve=filters,
)  # fmt: skip
CARD_TARGET = CARDS.target(namespaced=True)


def vendors_controller(surroundings: Surroundings) -> Any:
    made = kit.ParameterController(surroundings, CARDS, CLASSES)
    return lambda: controller.run_all(surroundings, [made])


@contextlib.asynccontextmanager
async def example() -> AsyncIterator[controlplane.ControlPlane]:
    async with controlplane.control_plane(gates=firstalpha.GATES) as plane:
        await plane.create(a_node("worker-1"))
        await plane.apply((EXAMPLE / "definitions.yaml").read_text())
        plane.launch("vendor", vendors_controller)
        for name in ("slice.yaml", "class.yaml", "parameters.yaml", "claim.yaml", "pod.yaml"):
            await plane.apply((EXAMPLE / name).read_text())
        await plane.advance(60)
        yield plane


async def resources(plane: controlplane.ControlPlane) -> list[str]:
    claim = await plane.client.get(alpha.ResourceClaim, "my-claim", namespace="default")
    found: list[str] = []
    for handle in claim.status.allocation.resource_handles if claim.status.allocation is not None else ():
        assert handle.structured_data is not None
        assert handle.structured_data.named_resources_with_attributes is not None
        found += handle.structured_data.named_resources_with_attributes.resources
    return found


async def generated(plane: controlplane.ControlPlane) -> list[parameters.ResourceClaimParameters]:
    return list(await plane.all_of(parameters.ResourceClaimParameters))


async def change(plane: controlplane.ControlPlane, kind: target.Target[Any], name: str, spec: dict[str, Any]) -> None:
    namespace = "default" if kind.namespaced else ""
    await plane.client.patch(kind, name, patch=patches.merge({"spec": spec}), namespace=namespace)
    await plane.advance(60)


async def test_the_example_of_the_kep() -> None:
    async with example() as plane:
        assert "cannot allocate all claims" in await plane.why("my-pod")
        assert await resources(plane) == []
        await change(plane, CLASSES.target(namespaced=False), "gpu-parameters", {"maximumMemory": "64Gi"})
        assert await plane.node_of("my-pod") == "worker-1"
        assert await resources(plane) == ["gpu-1"]
        claim = await plane.client.get(alpha.ResourceClaim, "my-claim", namespace="default")
        assert claim.status.allocation is not None
        data = claim.status.allocation.resource_handles[0].structured_data
        assert data is not None
        assert data.vendor_claim_parameters["spec"]["sharing"] == {"strategy": "TimeSliced"}
        assert data.vendor_class_parameters["kind"] == "CardClassParameters"


async def test_generated_parameters_follow_their_source_and_go_with_it() -> None:
    async with example() as plane:
        [made] = await generated(plane)
        card = await plane.client.get(CARD_TARGET, "my-parameters", namespace="default")
        assert made.generated_from is not None
        assert (made.generated_from.kind, made.generated_from.uid) == ("CardParameters", card.metadata.uid)
        await change(plane, CARD_TARGET, "my-parameters", {"minimumMemory": "8Gi"})
        [again] = await generated(plane)
        assert again.metadata.uid == made.metadata.uid
        model = again.requests[0].named_resources_with_attributes
        assert model is not None
        assert model.required[0].selector.endswith('attributes["memory"] >= "8Gi"')
        assert await resources(plane) == ["gpu-0"]
        await plane.client.delete(CARD_TARGET, "my-parameters", namespace="default")
        await plane.advance(60)
        assert await generated(plane) == []


async def test_parameters_that_the_vendor_refuses() -> None:
    async with example() as plane:
        before = await generated(plane)
        await change(plane, CARD_TARGET, "my-parameters", {"minimumRuntimeVersion": "new"})
        await change(plane, CARD_TARGET, "my-parameters", {"minimumRuntimeVersion": "1.0", "minimumMemory": "1Ti"})
        await change(plane, CARD_TARGET, "my-parameters", {"minimumMemory": '"'})
        messages = await plane.events("InvalidParameters")
        assert "Expected `str` matching regex" in messages[0]
        assert messages[1].startswith("ResourceClaimParameters.resource.k8s.io")
        assert messages[2] == "spec.minimumMemory: there are no such cards"
        assert await generated(plane) == before
