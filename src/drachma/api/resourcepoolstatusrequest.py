"""ResourcePoolStatusRequest: a request for the status of resource pools, and its answer. A partial view."""

from typing import Any

from drachma.api import meta
from drachma.api.struct import ABSENT_TUPLE, ZERO_TEXT, Int32, Struct


class ResourcePoolStatusRequestSpec(Struct, frozen=True, kw_only=True):
    """Driver, pool and limit of the request."""

    driver: str = ZERO_TEXT
    pool_name: str | None = None
    limit: Int32 | None = None
    default_partition_type_attribute: str | None = None


class ResourcePoolStatusRequestStatus(Struct, frozen=True, kw_only=True):
    """Answer to the request, without the fields about single pools."""

    pool_count: Int32 | None = None
    pools: tuple[Any, ...] = ABSENT_TUPLE
    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE


class ResourcePoolStatusRequest(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io`` ResourcePoolStatusRequest, cluster-scoped; a partial view."""

    spec: ResourcePoolStatusRequestSpec = ResourcePoolStatusRequestSpec()
    status: ResourcePoolStatusRequestStatus | None = None
