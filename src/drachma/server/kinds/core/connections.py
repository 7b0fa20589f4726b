"""Subresources of pods and nodes that nodes answer: logs, exec, attach, port forwarding, and proxies."""

from typing import Final

from drachma.server.surface import resources, verbs

_BOTH: Final = (verbs.CREATE, verbs.GET)
"""SPDY clients post; WebSocket clients can only get."""

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
