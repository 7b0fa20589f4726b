"""ResourceClaimParameters and ResourceClassParameters: vendors' parameters in a form that the scheduler reads.

In the KEP's spelling, parameters of the vendor are next to requests and filters, and a request of the model
``namedResourcesWithAttributes`` is for several resources (``required``) or for one (``selector``). In the spelling of
1.30 the model is ``namedResources``, and requests are grouped by driver.
"""

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, Struct
from drachma.api.v1alpha2 import references


class NamedResourcesRequest(Struct, frozen=True, kw_only=True):
    """A request for one resource for which the CEL expression is true."""

    selector: str = ABSENT_TEXT


class NamedResourcesWithAttributesRequest(Struct, frozen=True, kw_only=True):
    """Requests for one resource each, or a single request."""

    required: tuple[NamedResourcesRequest, ...] = ABSENT_TUPLE
    selector: str = ABSENT_TEXT


class ResourceRequest(Struct, frozen=True, kw_only=True):
    """Request to one driver; exactly one model is set."""

    driver_name: str = ABSENT_TEXT
    named_resources_with_attributes: NamedResourcesWithAttributesRequest | None = None


class DriverResourceRequest(Struct, frozen=True, kw_only=True):
    """Request to a driver, in the spelling of 1.30. Exactly one model is set."""

    vendor_parameters: meta.Opaque = None
    named_resources: NamedResourcesRequest | None = None


class DriverRequests(Struct, frozen=True, kw_only=True):
    """All requests to one driver, in the spelling of 1.30."""

    driver_name: str = ABSENT_TEXT
    vendor_parameters: meta.Opaque = None
    requests: tuple[DriverResourceRequest, ...] = ABSENT_TUPLE


class ResourceClaimParameters(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1alpha2`` ResourceClaimParameters."""

    generated_from: references.ResourceClaimParametersReference | None = None
    shareable: bool | None = None
    vendor_parameters: meta.Opaque = None
    requests: tuple[ResourceRequest, ...] = ABSENT_TUPLE
    driver_requests: tuple[DriverRequests, ...] = ABSENT_TUPLE


class NamedResourcesFilter(Struct, frozen=True, kw_only=True):
    """Condition on every resource of the class."""

    selector: str = ABSENT_TEXT


class ResourceFilter(Struct, frozen=True, kw_only=True):
    """A filter for resources of one driver; exactly one model is set."""

    driver_name: str = ABSENT_TEXT
    named_resources_with_attributes: NamedResourcesFilter | None = None
    named_resources: NamedResourcesFilter | None = None


class ResourceClassParameters(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1alpha2`` ResourceClassParameters, cluster-scoped.

    ``vendor_parameters`` is any object, or in the spelling of 1.30 a list of objects with ``driverName`` and
    ``parameters``.
    """

    generated_from: references.ResourceClassParametersReference | None = None
    vendor_parameters: meta.Opaque = None
    filters: tuple[ResourceFilter, ...] = ABSENT_TUPLE
