"""What is below pods and nodes and answered by nodes: logs, commands, streams, ports, and whatever a node serves."""

from typing import Final

from drachma.server.surface import resources, verbs

_BOTH: Final = (verbs.CREATE, verbs.GET)
"""Clients that speak SPDY post; those that speak WebSocket can only get."""

LOG: Final = resources.Subresource(name="log", verbs=(verbs.GET,), connects=True)
EXEC: Final = resources.Subresource(name="exec", verbs=_BOTH, kind="PodExecOptions", api_version="v1", connects=True)
ATTACH: Final = resources.Subresource(
    name="attach", verbs=_BOTH, kind="PodAttachOptions", api_version="v1", connects=True
)
PORT_FORWARD: Final = resources.Subresource(
    name="portforward", verbs=_BOTH, kind="PodPortForwardOptions", api_version="v1", connects=True
)
NODE_PROXY: Final = resources.Subresource(
    name="proxy",
    verbs=(verbs.CREATE, verbs.DELETE, verbs.GET, verbs.PATCH, verbs.UPDATE),
    kind="NodeProxyOptions",
    api_version="v1",
    connects=True,
    has_path=True,
)
