"""Service: the fields that quotas and endpoints read. A partial view."""

from collections.abc import Mapping

import msgspec

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Struct


class ServicePort(Struct, frozen=True, kw_only=True):
    """A port, with its port on nodes."""

    name: str = ABSENT_TEXT
    port: Int32 = ABSENT_INT
    target_port: Int32 | str | None = None
    protocol: str = ABSENT_TEXT
    app_protocol: str | None = None
    node_port: Int32 = ABSENT_INT


class ServiceSpec(Struct, frozen=True, kw_only=True):
    """Type, ports, addresses and selector of the service."""

    type: str = ABSENT_TEXT
    ports: tuple[ServicePort, ...] = ABSENT_TUPLE
    selector: Mapping[str, str] = ABSENT_MAP
    cluster_ip: str = msgspec.field(default=ABSENT_TEXT, name="clusterIP")
    ip_families: tuple[str, ...] = ABSENT_TUPLE
    publish_not_ready_addresses: bool = False
    allocate_load_balancer_node_ports: bool | None = None


class Service(meta.Object, frozen=True, kw_only=True):
    """Core Service, namespaced; a partial view."""

    spec: ServiceSpec = ServiceSpec()
