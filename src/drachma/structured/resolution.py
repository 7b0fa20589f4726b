"""Parameters of a claim: those of its class and its own, referred to directly or generated.

A missing object is data, with a reason in the words of Kubernetes 1.30: the claim waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar

import msgspec

from drachma.api.v1alpha2 import parameters, references, resourceclaim, resourceclass

_GROUP: Final = "resource.k8s.io"

_ObjectT_co = TypeVar("_ObjectT_co", covariant=True)


class Objects(Protocol):
    """Lookup of classes and parameters."""

    def resource_class(self, name: str) -> resourceclass.ResourceClass | None: ...
    def claim_parameters(self, namespace: str) -> Iterable[parameters.ResourceClaimParameters]: ...
    def class_parameters(self) -> Iterable[parameters.ResourceClassParameters]: ...


class _Cache(Protocol[_ObjectT_co]):
    """Objects of one kind, by name and namespace."""

    def get(self, name: str) -> _ObjectT_co | None: ...
    def list_namespace(self, namespace: str) -> Iterable[_ObjectT_co]: ...
    def __iter__(self) -> Iterator[_ObjectT_co]: ...


class CachedObjects:
    """Lookup of classes and parameters in caches."""

    def __init__(
        self,
        classes: _Cache[resourceclass.ResourceClass],
        of_claims: _Cache[parameters.ResourceClaimParameters],
        of_classes: _Cache[parameters.ResourceClassParameters],
    ) -> None:
        self._classes: Final = classes
        self._of_claims: Final = of_claims
        self._of_classes: Final = of_classes

    def resource_class(self, name: str) -> resourceclass.ResourceClass | None:
        return self._classes.get(name)

    def claim_parameters(self, namespace: str) -> Iterable[parameters.ResourceClaimParameters]:
        return self._of_claims.list_namespace(namespace)

    def class_parameters(self) -> Iterable[parameters.ResourceClassParameters]:
        return self._of_classes


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """Class of a claim with all parameters."""

    resource_class: resourceclass.ResourceClass
    of_class: parameters.ResourceClassParameters
    of_claim: parameters.ResourceClaimParameters


class Waiting(msgspec.Struct, frozen=True):
    """Object that a claim waits for."""

    reason: str


def resolve(spec: resourceclaim.ResourceClaimSpec, namespace: str, objects: Objects) -> Resolution | Waiting:
    """Return the parameters of a claim in a namespace, or what it waits for."""
    class_ = objects.resource_class(spec.resource_class_name)
    if class_ is None:
        return Waiting(f"resource class {spec.resource_class_name} does not exist")
    if not class_.structured_parameters:
        return Waiting(
            f"resource class {spec.resource_class_name} has no structured parameters: "
            f"a controller of driver {class_.driver_name} has to allocate the claim"
        )
    of_class = class_parameters(class_, objects)
    if isinstance(of_class, Waiting):
        return of_class
    of_claim = _claim_parameters(spec.parameters_ref, namespace, class_, objects=objects)
    if isinstance(of_claim, Waiting):
        return of_claim
    return Resolution(resource_class=class_, of_class=of_class, of_claim=of_claim)


def class_parameters(
    class_: resourceclass.ResourceClass, objects: Objects
) -> parameters.ResourceClassParameters | Waiting:
    """Return the parameters of a class, or what its claims wait for."""
    reference = class_.parameters_ref
    if reference is None:
        return parameters.ResourceClassParameters()
    if (reference.api_group, reference.kind) == (_GROUP, "ResourceClassParameters"):
        for each in objects.class_parameters():
            if each.metadata.name == reference.name:
                return each
        return Waiting(f"class parameters {reference.name} not found")
    for each in objects.class_parameters():
        origin = each.generated_from
        if origin is not None and _is_meant(origin, reference) and origin.namespace == reference.namespace:
            return each
    place = f"{reference.namespace}/{reference.name}" if reference.namespace else reference.name
    return Waiting(f"generated class parameters for {reference.kind}.{reference.api_group} {place} not found")


def _claim_parameters(
    reference: references.ResourceClaimParametersReference | None,
    namespace: str,
    class_: resourceclass.ResourceClass,
    *,
    objects: Objects,
) -> parameters.ResourceClaimParameters | Waiting:
    if reference is None:
        return _anything_of(class_.driver_name)
    place = f"{namespace}/{reference.name}"
    if (reference.api_group, reference.kind) == (_GROUP, "ResourceClaimParameters"):
        for each in objects.claim_parameters(namespace):
            if each.metadata.name == reference.name:
                return each
        return Waiting(f"claim parameters {place} not found")
    for each in objects.claim_parameters(namespace):
        if each.generated_from is not None and _is_meant(each.generated_from, reference):
            return each
    return Waiting(f"generated claim parameters for {reference.kind}.{reference.api_group} {place} not found")


def _anything_of(driver: str) -> parameters.ResourceClaimParameters:
    """Return the parameters of a claim without any: one resource of its class's driver, which may be shared."""
    one = parameters.NamedResourcesWithAttributesRequest(selector="true")
    request = parameters.ResourceRequest(driver_name=driver, named_resources_with_attributes=one)
    return parameters.ResourceClaimParameters(shareable=True, requests=(request,))


def _is_meant(
    origin: references.ResourceClaimParametersReference | references.ResourceClassParametersReference,
    reference: references.ResourceClaimParametersReference | references.ResourceClassParametersReference,
) -> bool:
    """Return True if parameters were generated from the object of a reference. The uid counts if both have one."""
    is_named = (origin.api_group, origin.kind, origin.name) == (reference.api_group, reference.kind, reference.name)
    return is_named and (not reference.uid or origin.uid in ("", reference.uid))
