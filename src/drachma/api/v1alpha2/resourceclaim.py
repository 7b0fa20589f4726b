"""ResourceClaim: requested class and parameters, allocated resources, and their users."""

from typing import Final

from drachma.api import meta, nodeselector, resourceclaim
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, Struct
from drachma.api.v1alpha2 import references

IMMEDIATE: Final = "Immediate"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


class ResourceClaimSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a claim and of a claim template's claims."""

    resource_class_name: str = ZERO_TEXT
    parameters_ref: references.ResourceClaimParametersReference | None = None
    allocation_mode: str = ABSENT_TEXT


class NamedResourcesWithAttributesResult(Struct, frozen=True, kw_only=True):
    """The names of allocated resources, in the KEP's spelling."""

    resources: tuple[str, ...] = ABSENT_TUPLE


class NamedResourcesAllocationResult(Struct, frozen=True, kw_only=True):
    """The name of one allocated resource, in the spelling of 1.30."""

    name: str = ZERO_TEXT


class DriverAllocationResult(Struct, frozen=True, kw_only=True):
    """Allocation for one request, in the spelling of 1.30."""

    vendor_request_parameters: meta.Opaque = None
    named_resources: NamedResourcesAllocationResult | None = None


class StructuredResourceHandle(Struct, frozen=True, kw_only=True):
    """Allocation of one driver, with the parameters at that time.

    The KEP has the result of one model, and 1.30 has ``results``, one for each request.
    """

    vendor_class_parameters: meta.Opaque = None
    vendor_claim_parameters: meta.Opaque = None
    node_name: str = ABSENT_TEXT
    named_resources_with_attributes: NamedResourcesWithAttributesResult | None = None
    results: tuple[DriverAllocationResult, ...] = ABSENT_TUPLE


class ResourceHandle(Struct, frozen=True, kw_only=True):
    """Data for the plugin of a driver: opaque ``data``, or structured."""

    driver_name: str = ABSENT_TEXT
    data: str = ABSENT_TEXT
    structured_data: StructuredResourceHandle | None = None


class AllocationResult(Struct, frozen=True, kw_only=True):
    """Allocated resources, their nodes, and whether they can be shared."""

    resource_handles: tuple[ResourceHandle, ...] = ABSENT_TUPLE
    available_on_nodes: nodeselector.NodeSelector | None = None
    shareable: bool | None = None


class ResourceClaimStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a claim; without an allocation it is pending."""

    driver_name: str = ABSENT_TEXT
    allocation: AllocationResult | None = None
    reserved_for: tuple[resourceclaim.ResourceClaimConsumerReference, ...] = ABSENT_TUPLE
    deallocation_requested: bool | None = None


ABSENT_STATUS: Final = ResourceClaimStatus()


class ResourceClaim(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1alpha2`` ResourceClaim."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ABSENT_STATUS
