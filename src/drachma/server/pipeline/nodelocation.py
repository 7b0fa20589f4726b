"""Calls that a node answers: logs, commands and streams in pods, ports of pods, and the node's own API.

This module checks permission and finds the address. The transport of the call then connects to it.
"""

import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.server import status
from drachma.server.access import attributes, authorization
from drachma.server.calls import options, podlogoptions
from drachma.server.calls.call import Call
from drachma.server.pipeline.answer import Answer, NodeEndpoint, Text
from drachma.server.pipeline.services import Services
from drachma.server.surface import verbs
from drachma.store import record

_ADDRESS_TYPES: Final = ("InternalIP", "ExternalIP", "InternalDNS", "Hostname", "ExternalDNS")
"""Address types of a node in kubeadm's order of preference, because names of nodes need not resolve."""

_PORT: Final = 10250
_STREAMS: Final = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
"""Streams that a client can ask for, with the names that nodes use."""


async def log(services: Services, call: Call) -> Answer:
    """Locate the log of a container; answer with an empty text if the pod has no node yet."""
    log_options = podlogoptions.read(call.query, call.target.name)
    pod = services.get(call.target).value
    container = _container(pod, log_options.container)
    if not _node_name(pod):
        return Answer(200, Text(""))
    metadata = pod["metadata"]
    path = f"/containerLogs/{metadata['namespace']}/{metadata['name']}/{container}"
    return Answer(200, place(services, _node_name(pod), path, query=log_options.query))


async def execute(services: Services, call: Call) -> Answer:
    """Locate the execution of a command in a container."""
    command = [("command", word) for word in call.query.get("command", ())]
    return _stream(services, call, "exec", query=[*_streams(call), *command])


async def attach(services: Services, call: Call) -> Answer:
    """Locate the streams of a container."""
    return _stream(services, call, "attach", query=_streams(call))


async def forward_ports(services: Services, call: Call) -> Answer:
    """Locate connections to ports of a pod."""
    _require_create(services, call)
    pod = services.get(call.target).value
    ports = [port for text in call.query.get("ports", ()) for port in text.split(",")]
    query = [("port", ",".join(ports))] if ports else []
    path = f"/portForward/{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    return Answer(200, place(services, _require_node(pod), path, query=query, is_upgrade=True))


async def proxy(services: Services, call: Call) -> Answer:
    """Locate a path on a node; ``https:NAME:PORT`` is a port other than the agent's."""
    scheme, name, port = _split_name(call.target.name)
    query = [(key, value) for key, values in call.query.items() for value in values]
    location = place(services, name, f"/{call.target.path}", query=query)
    if port and port != location.port:
        location = msgspec.structs.replace(location, port=port, is_secure=scheme == "https", is_foreign=True)
    return Answer(200, location)


def _stream(services: Services, call: Call, path: str, *, query: Sequence[tuple[str, str]]) -> Answer:
    _require_create(services, call)
    pod = services.get(call.target).value
    container = _container(pod, (call.query.get("container") or ("",))[0])
    metadata = pod["metadata"]
    where = f"/{path}/{metadata['namespace']}/{metadata['name']}/{container}"
    return Answer(200, place(services, _require_node(pod), where, query=query, is_upgrade=True))


def _require_create(services: Services, call: Call) -> None:
    """Require permission to create the subresource, also when WebSocket makes the request a GET."""
    if call.verb != verbs.CREATE:
        creation = msgspec.structs.replace(attributes.from_call(call), verb=verbs.CREATE)
        authorization.require(services.authoriser, creation)


def _streams(call: Call) -> list[tuple[str, str]]:
    return [(parameter, "1") for name, parameter in _STREAMS.items() if options.boolean(call.query, name)]


def _container(pod: Mapping[str, Any], name: str) -> str:
    """Return the name of the requested container, or of the only one if the call names none."""
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    names = [
        str(each["name"])
        for field in ("initContainers", "containers", "ephemeralContainers")
        for each in spec.get(field) or ()
    ]
    if name:
        if name not in names:
            raise status.bad_request(f"container {name} is not valid for pod {pod_name}")
        return name
    containers: Sequence[Mapping[str, Any]] = spec.get("containers") or ()
    if len(containers) != 1:
        choice = f", choose one of: [{' '.join(names)}]" if containers else ""
        raise status.bad_request(f"a container name must be specified for pod {pod_name}{choice}")
    return str(containers[0]["name"])


def _node_name(pod: Mapping[str, Any]) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _require_node(pod: Mapping[str, Any]) -> str:
    if not _node_name(pod):
        raise status.bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    return _node_name(pod)


def place(
    services: Services,
    node: str,
    path: str,
    *,
    query: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    is_upgrade: bool = False,
) -> NodeEndpoint:
    """Return the address of a path of a node's agent.

    Raises:
        status.StatusError: the node does not exist or has no address.
    """
    existing = services.store.get(record.Key("nodes", "", node))
    if existing is None:
        raise status.failure(404, "NotFound", f'nodes "{node}" not found', details={"name": node, "kind": "nodes"})
    current: Mapping[str, Any] = existing.value.get("status") or {}
    addresses = {
        each.get("type", ""): str(each.get("address", "")) for each in reversed(current.get("addresses") or ())
    }
    host = next((addresses[kind] for kind in _ADDRESS_TYPES if kind in addresses), "")
    if not host:
        known_addresses = " ".join(f"{{{kind} {address}}}" for kind, address in addresses.items())
        raise status.unclassified(f"no preferred addresses found; known addresses: [{known_addresses}]")
    port = ((current.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
    return NodeEndpoint(
        node=node,
        host=host,
        port=port or _PORT,
        path=path,
        query=urllib.parse.urlencode(query),
        is_upgrade=is_upgrade,
    )


def _split_name(name: str) -> tuple[str, str, int]:
    """Split ``name``, ``name:port`` or ``scheme:name:port`` into scheme, name and port."""
    *before, last = name.split(":")
    scheme = node = port = ""
    match before:
        case []:
            node = last
        case [node]:
            port = last
        case [scheme, node]:
            port = last
    is_port = port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536
    if not node or scheme not in ("", "http", "https") or (port and not is_port):
        raise status.bad_request(f'invalid node request "{name}"')
    return scheme, node, int(port) if port else 0
