"""Service: what quotas count of it, and which pods it is about. A partial view."""

from collections.abc import Mapping

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Struct


class ServicePort(Struct, frozen=True, kw_only=True):
    """A port, and where every node offers it."""

    name: str = ABSENT_TEXT
    port: Int32 = ABSENT_INT
    node_port: Int32 = ABSENT_INT


class ServiceSpec(Struct, frozen=True, kw_only=True):
    """How the service is reached."""

    type: str = ABSENT_TEXT
    ports: tuple[ServicePort, ...] = ABSENT_TUPLE
    selector: Mapping[str, str] = ABSENT_MAP
    allocate_load_balancer_node_ports: bool | None = None


class Service(meta.Object, frozen=True, kw_only=True):
    """Core Service, namespaced; a partial view."""

    spec: ServiceSpec = ServiceSpec()
