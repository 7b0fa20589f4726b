"""The downward API: fields of a pod and resources of its containers as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from drachma import errors
from drachma.node.podview.containers import ResourceFieldSelector
from drachma.node.podview.pod import PodView
from drachma.values import quantity

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")

_FIELDS: Final[Mapping[str, Callable[[PodView], str]]] = {
    "metadata.name": lambda pod: pod.metadata.name,
    "metadata.namespace": lambda pod: pod.metadata.namespace,
    "metadata.uid": lambda pod: pod.metadata.uid,
    "metadata.labels": lambda pod: _lines(pod.metadata.labels),
    "metadata.annotations": lambda pod: _lines(pod.metadata.annotations),
    "spec.nodeName": lambda pod: pod.spec.node_name,
    "spec.serviceAccountName": lambda pod: pod.spec.service_account_name,
    "status.hostIP": lambda pod: pod.status.host_ip,
    "status.hostIPs": lambda pod: pod.status.host_ip,
    "status.podIP": lambda pod: pod.status.pod_ip,
    "status.podIPs": lambda pod: ",".join(each.ip for each in pod.status.pod_ips),
}


def field(pod: PodView, path: str) -> str:
    """Return a field of a pod.

    Raises:
        errors.NodeError: the field is not supported.
    """
    match = _SUBSCRIPT.fullmatch(path)
    if match is not None:
        texts = pod.metadata.labels if match[1] == "labels" else pod.metadata.annotations
        return texts.get(match[2], "")
    if path not in _FIELDS:
        raise errors.NodeError(f"unsupported fieldPath: {path}")
    return _FIELDS[path](pod)


def resource(
    pod: PodView, selector: ResourceFieldSelector, *, container: str, allocatable: Mapping[str, quantity.Quantity]
) -> str:
    """Return a request or limit of a container. Without a limit, it is the node's allocatable amount.

    Raises:
        errors.NodeError: the resource is not supported.
    """
    kind, _, name = selector.resource.partition(".")
    if kind not in ("limits", "requests") or not name:
        raise errors.NodeError(f"unsupported container resource : {selector.resource}")
    resources = pod.container(selector.container_name or container).resources
    if kind == "limits":
        value = resources.limits.get(name) or allocatable.get(name)
    else:
        value = resources.requests.get(name) or resources.limits.get(name)
    divisor = selector.divisor.nanos if selector.divisor is not None and selector.divisor.nanos else 10**9
    return str(-(-value.nanos // divisor)) if value is not None else "0"


def _lines(texts: Mapping[str, str]) -> str:
    """Return pairs in the format of Go's fmt, quoted and sorted by key."""
    return "\n".join(f'{key}="{_escape(value)}"' for key, value in sorted(texts.items()))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
