"""Proxies to pods and services: ``pods/NAME/proxy`` and ``services/NAME/proxy``.

This module finds the address behind a name. The transport of the call then connects to it.
"""

import ipaddress
import urllib.parse
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from drachma.server import serviceendpoints, status
from drachma.server.calls.call import Call
from drachma.server.pipeline.answer import Answer, NodeEndpoint
from drachma.server.pipeline.services import Services
from drachma.store import record
from drachma.values import quotation

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class SplitName(NamedTuple):
    """Parts of ``name``, ``name:port`` or ``scheme:name:port``; absent parts are empty."""

    scheme: str
    name: str
    port: str


def split_name(text: str, title: str) -> SplitName:
    """Return the parts of the name in a path to a pod or service. Raises a StatusError (400) for another form."""
    match text.split(":"):
        case [name]:
            parts = SplitName("", name, "")
        case [name, port]:
            parts = SplitName("", name, port)
        case [scheme, name, port]:
            parts = SplitName(scheme, name, port)
        case _:
            parts = SplitName("", "", "")
    if not parts.name or parts.scheme not in ("", "http", "https"):
        raise status.bad_request(f"invalid {title} request {quotation.quote(text)}")
    return parts


async def proxy_pod(services: Services, call: Call) -> Answer:
    """Locate a port of a pod: the one in the name, or the first port of its containers."""
    parts = split_name(call.target.name, "pod")
    pod = services.get(msgspec.structs.replace(call.target, name=parts.name)).value
    address = str((pod.get("status") or {}).get("podIP") or "")
    node = str(pod["spec"].get("nodeName") or "")
    if serviceendpoints.is_simulated(node, services.store):
        raise _simulated(f"pod {quotation.quote(parts.name)}", address)
    _require_allowed(address)
    port = _number(parts.port or _first_port(pod), parts.scheme)
    return Answer(200, _location(services, call, parts.scheme, serviceendpoints.Endpoint(address, port, node)))


async def proxy_service(services: Services, call: Call) -> Answer:
    """Locate a pod behind a port of a service. The port is a name or a number, or it has no name."""
    parts = split_name(call.target.name, "service")
    port_name = parts.port
    if parts.port.isdecimal():
        service = services.get(msgspec.structs.replace(call.target, name=parts.name)).value
        ports = (service.get("spec") or {}).get("ports") or ()
        names = [str(each.get("name") or "") for each in ports if each.get("port") == int(parts.port)]
        if not names:
            name = quotation.quote(parts.name)
            raise _unavailable(f"no service port {int(parts.port)} found for service {name}")
        port_name = names[0]
    namespace = call.target.namespace or ""
    endpoint = serviceendpoints.find_named(namespace, parts.name, {port_name}, store=services.store, are_pods=True)
    if endpoint is None:
        raise _unavailable(f"no endpoints available for service {quotation.quote(parts.name)}")
    if isinstance(endpoint, serviceendpoints.Simulated):
        raise _simulated(f"service {quotation.quote(parts.name)}", endpoint.address)
    _require_allowed(endpoint.address)
    location = _location(services, call, parts.scheme, endpoint)
    return Answer(200, location)


def _location(services: Services, call: Call, scheme: str, endpoint: serviceendpoints.Endpoint) -> NodeEndpoint:
    query = [(key, value) for key, values in call.query.items() for value in values]
    return NodeEndpoint(
        node=endpoint.node,
        host=endpoint.address,
        port=endpoint.port,
        path=f"/{call.target.path}",
        query=urllib.parse.urlencode(query),
        is_secure=scheme == "https",
        is_foreign=True,
        agent_port=_agent_port(services, endpoint.node),
    )


def _first_port(pod: Mapping[str, Any]) -> str:
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            return str(port.get("containerPort"))
    return ""


def _number(port: str, scheme: str) -> int:
    if not port:
        return _DEFAULT_PORTS[scheme or "http"]
    if not port.isdecimal() or not 0 < int(port[:6]) < 65536:
        raise status.bad_request(f"port {quotation.quote(port)}: expected a number from 1 to 65535")
    return int(port)


def _agent_port(services: Services, node: str) -> int:
    """Return the port of a node's agent; 0 if the node is unknown."""
    existing = services.store.get(record.Key("nodes", "", node)) if node else None
    current = {} if existing is None else existing.value.get("status") or {}
    return int(((current.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or 0)


def _require_allowed(address: str) -> None:
    """Refuse a pod without an address. The transport refuses addresses that are not those of one machine."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise status.bad_request("address not allowed") from None


def _simulated(title: str, address: str) -> status.StatusError:
    return _unavailable(f"{title}: its containers are simulated: {address or 'its address'} is not dialled")


def _unavailable(message: str) -> status.StatusError:
    return status.failure(503, "ServiceUnavailable", message)
