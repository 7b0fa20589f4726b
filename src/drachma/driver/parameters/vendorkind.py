"""Kind of parameters as a driver's author declares it: its resource, its Python type, and its requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from drachma.api import meta
from drachma.api.v1alpha2 import parameters, references
from drachma.client import target

SpecT = TypeVar("SpecT")


class Request(msgspec.Struct, frozen=True):
    """Resources of a driver: one for each selector."""

    driver: str
    selectors: tuple[str, ...]


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of a claim with some parameters; ``shareable`` lets several pods use it at a time."""

    requests: tuple[Request, ...]
    shareable: bool = False


class Filter(msgspec.Struct, frozen=True):
    """Condition on all resources of a driver that claims of a class get."""

    driver: str
    selector: str


class VendorObject(meta.Object, frozen=True, kw_only=True):
    """An object of a vendor's kind; what is in ``spec`` is the vendor's."""

    spec: meta.Opaque = None


class _Kind(msgspec.Struct, Generic[SpecT], frozen=True, kw_only=True):
    group: str
    version: str
    kind: str
    plural: str
    spec: type[SpecT]
    """The type of ``spec``: a msgspec Struct, whose types and constraints are checked, or what else msgspec reads."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    def target(self, *, namespaced: bool) -> target.Target[VendorObject]:
        """Resource of the kind."""
        plain = target.metadata_of(self.group, self.version, plural=self.plural, kind=self.kind, namespaced=namespaced)
        return target.view_of(plain, VendorObject)

    def read(self, vendor_object: VendorObject) -> SpecT:
        """Decode an object's spec into the vendor's type. Raises msgspec.ValidationError with the field's path."""
        return msgspec.convert(vendor_object.spec or {}, self.spec)

    def copy(self, vendor_object: VendorObject) -> dict[str, object]:
        """Return the object as the driver's plugin gets it: without what only the API server needs."""
        own = vendor_object.metadata
        metadata = {"name": own.name, "namespace": own.namespace, "uid": own.uid}
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {key: text for key, text in metadata.items() if text},
            "spec": vendor_object.spec,
        }


class ClaimKind(_Kind[SpecT], frozen=True, kw_only=True):
    """A namespaced kind that claims refer to. ``resolve`` may raise ValueError for what its type does not tell."""

    resolve: Callable[[SpecT], Wish]

    def generate(self, vendor_object: VendorObject, *, name: str) -> parameters.ResourceClaimParameters:
        """Return the parameters of an object. Raises ValueError or msgspec.ValidationError for invalid ones."""
        wish = self.resolve(self.read(vendor_object))
        own = vendor_object.metadata
        return parameters.ResourceClaimParameters(
            metadata=meta.ObjectMeta(
                name=name, namespace=own.namespace, owner_references=(_owner(self, vendor_object),)
            ),
            generated_from=references.ResourceClaimParametersReference(
                api_group=self.group, kind=self.kind, name=own.name, uid=own.uid
            ),
            shareable=wish.shareable or None,
            vendor_parameters=self.copy(vendor_object),
            requests=tuple(map(_request, wish.requests)),
        )


class ClassKind(_Kind[SpecT], frozen=True, kw_only=True):
    """A kind of cluster scope that classes refer to."""

    resolve: Callable[[SpecT], tuple[Filter, ...]]

    def generate(self, vendor_object: VendorObject, *, name: str) -> parameters.ResourceClassParameters:
        """Like ClaimKind.generate(), for parameters of classes."""
        filters = self.resolve(self.read(vendor_object))
        own = vendor_object.metadata
        return parameters.ResourceClassParameters(
            metadata=meta.ObjectMeta(name=name, owner_references=(_owner(self, vendor_object),)),
            generated_from=references.ResourceClassParametersReference(
                api_group=self.group, kind=self.kind, name=own.name, uid=own.uid
            ),
            vendor_parameters=self.copy(vendor_object),
            filters=tuple(
                parameters.ResourceFilter(
                    driver_name=each.driver,
                    named_resources_with_attributes=parameters.NamedResourcesFilter(selector=each.selector),
                )
                for each in filters
            ),
        )


def _owner(kind: _Kind[SpecT], vendor_object: VendorObject) -> meta.OwnerReference:
    own = vendor_object.metadata
    return meta.OwnerReference(
        api_version=kind.api_version, kind=kind.kind, name=own.name, uid=own.uid, controller=True
    )


def _request(request: Request) -> parameters.ResourceRequest:
    required = tuple(parameters.NamedResourcesRequest(selector=each) for each in request.selectors)
    return parameters.ResourceRequest(
        driver_name=request.driver,
        named_resources_with_attributes=parameters.NamedResourcesWithAttributesRequest(required=required),
    )
