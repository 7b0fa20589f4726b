"""Calls that a node answers: logs of pods, commands and streams in them, their ports, and whatever the node serves.

Here is decided who may have them and where they lead; the door through which the call came goes there.
"""

import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.server import status
from drachma.server.access import attributes, authorization
from drachma.server.calls import options, podlogoptions
from drachma.server.calls.call import Call
from drachma.server.pipeline.answer import Answer, Elsewhere, Text
from drachma.server.pipeline.services import Services
from drachma.server.surface import verbs
from drachma.store import record

_ADDRESS_TYPES: Final = ("InternalIP", "ExternalIP", "InternalDNS", "Hostname", "ExternalDNS")
"""Which address of a node is taken first; kubeadm's order, since names of nodes need not resolve."""

_PORT: Final = 10250
_STREAMS: Final = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
"""The streams that a client asks for, and what nodes call them."""


async def log(services: Services, call: Call) -> Answer:
    """The log of a container of a pod; nothing where the pod has no node yet."""
    wanted = podlogoptions.read(call.query, call.target.name)
    pod = services.get(call.target).value
    container = _container(pod, wanted.container)
    if not _node_of(pod):
        return Answer(200, Text(""))
    metadata = pod["metadata"]
    path = f"/containerLogs/{metadata['namespace']}/{metadata['name']}/{container}"
    return Answer(200, place(services, _node_of(pod), path, query=wanted.query))


async def execute(services: Services, call: Call) -> Answer:
    """A command in a container."""
    command = [("command", word) for word in call.query.get("command", ())]
    return _stream(services, call, "exec", query=[*_streams(call), *command])


async def attach(services: Services, call: Call) -> Answer:
    """The streams of a container."""
    return _stream(services, call, "attach", query=_streams(call))


async def forward_ports(services: Services, call: Call) -> Answer:
    """Connections to ports of a pod."""
    _require_create(services, call)
    pod = services.get(call.target).value
    ports = [port for text in call.query.get("ports", ()) for port in text.split(",")]
    query = [("port", ",".join(ports))] if ports else []
    path = f"/portForward/{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    return Answer(200, place(services, _assigned(pod), path, query=query, is_upgrade=True))


async def proxy(services: Services, call: Call) -> Answer:
    """Whatever a node serves under a path; ``https:NAME:PORT`` is a port of it other than the agent's."""
    scheme, name, port = _parts(call.target.name)
    query = [(key, value) for key, values in call.query.items() for value in values]
    found = place(services, name, f"/{call.target.path}", query=query)
    if port and port != found.port:
        found = msgspec.structs.replace(found, port=port, is_secure=scheme == "https", is_foreign=True)
    return Answer(200, found)


def _stream(services: Services, call: Call, path: str, *, query: Sequence[tuple[str, str]]) -> Answer:
    _require_create(services, call)
    pod = services.get(call.target).value
    container = _container(pod, (call.query.get("container") or ("",))[0])
    metadata = pod["metadata"]
    where = f"/{path}/{metadata['namespace']}/{metadata['name']}/{container}"
    return Answer(200, place(services, _assigned(pod), where, query=query, is_upgrade=True))


def _require_create(services: Services, call: Call) -> None:
    """Whoever reaches into a pod must be allowed to create that, also where WebSocket makes it a get."""
    if call.verb != verbs.CREATE:
        wanted = msgspec.structs.replace(attributes.of_call(call), verb=verbs.CREATE)
        authorization.require(services.authoriser, wanted)


def _streams(call: Call) -> list[tuple[str, str]]:
    return [(named, "1") for name, named in _STREAMS.items() if options.boolean(call.query, name)]


def _container(pod: Mapping[str, Any], name: str) -> str:
    """The container that is meant: the only one, unless it is named."""
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


def _node_of(pod: Mapping[str, Any]) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _assigned(pod: Mapping[str, Any]) -> str:
    if not _node_of(pod):
        raise status.bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    return _node_of(pod)


def place(
    services: Services,
    node: str,
    path: str,
    *,
    query: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    is_upgrade: bool = False,
) -> Elsewhere:
    """A path of a node's agent.

    Raises:
        status.StatusError: there is no such node, or nobody knows where it is.
    """
    stored = services.store.get(record.Key("nodes", "", node))
    if stored is None:
        raise status.failure(404, "NotFound", f'nodes "{node}" not found', details={"name": node, "kind": "nodes"})
    current: Mapping[str, Any] = stored.value.get("status") or {}
    addresses = {
        each.get("type", ""): str(each.get("address", "")) for each in reversed(current.get("addresses") or ())
    }
    host = next((addresses[kind] for kind in _ADDRESS_TYPES if kind in addresses), "")
    if not host:
        shown = " ".join(f"{{{kind} {address}}}" for kind, address in addresses.items())
        raise status.unclassified(f"no preferred addresses found; known addresses: [{shown}]")
    port = ((current.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
    return Elsewhere(
        node=node,
        host=host,
        port=port or _PORT,
        path=path,
        query=urllib.parse.urlencode(query),
        is_upgrade=is_upgrade,
    )


def _parts(name: str) -> tuple[str, str, int]:
    """Scheme, name and port of what a proxy is asked for: ``name``, ``name:port`` or ``scheme:name:port``."""
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
