"""Subresources that nodes and pods answer: logs, exec, attach, port forwarding, and proxies."""

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


def _proxy(kind: str) -> resources.Subresource:
    return resources.Subresource(
        name="proxy",
        verbs=(verbs.CREATE, verbs.DELETE, verbs.GET, verbs.PATCH, verbs.UPDATE),
        kind=kind,
        api_version="v1",
        connects=True,
        has_path=True,
    )


NODE_PROXY: Final = _proxy("NodeProxyOptions")
POD_PROXY: Final = _proxy("PodProxyOptions")
SERVICE_PROXY: Final = _proxy("ServiceProxyOptions")
