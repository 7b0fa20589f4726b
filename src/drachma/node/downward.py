"""What a pod can be told about itself: fields of it, and what its containers ask for, as texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from drachma import errors
from drachma.node.runningpod import ResourceFieldSelector, RunningPod
from drachma.values import quantity

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")

_FIELDS: Final[Mapping[str, Callable[[RunningPod], str]]] = {
    "metadata.name": lambda of: of.metadata.name,
    "metadata.namespace": lambda of: of.metadata.namespace,
    "metadata.uid": lambda of: of.metadata.uid,
    "metadata.labels": lambda of: _lines(of.metadata.labels),
    "metadata.annotations": lambda of: _lines(of.metadata.annotations),
    "spec.nodeName": lambda of: of.spec.node_name,
    "spec.serviceAccountName": lambda of: of.spec.service_account_name,
    "status.hostIP": lambda of: of.status.host_ip,
    "status.hostIPs": lambda of: of.status.host_ip,
    "status.podIP": lambda of: of.status.pod_ip,
    "status.podIPs": lambda of: ",".join(each.ip for each in of.status.pod_ips),
}


def field(of: RunningPod, path: str) -> str:
    """A field of a pod.

    Raises:
        errors.NodeError: there is no such field to be told.
    """
    match = _SUBSCRIPT.fullmatch(path)
    if match is not None:
        texts = of.metadata.labels if match[1] == "labels" else of.metadata.annotations
        return texts.get(match[2], "")
    if path not in _FIELDS:
        raise errors.NodeError(f"unsupported fieldPath: {path}")
    return _FIELDS[path](of)


def resource(
    of: RunningPod, wanted: ResourceFieldSelector, *, container: str, allocatable: Mapping[str, quantity.Quantity]
) -> str:
    """What a container asks for of a resource, or may have; of what it may have without a limit, all of the node.

    Raises:
        errors.NodeError: there is no such resource to be told.
    """
    kind, _, name = wanted.resource.partition(".")
    if kind not in ("limits", "requests") or not name:
        raise errors.NodeError(f"unsupported container resource : {wanted.resource}")
    resources = of.container(wanted.container_name or container).resources
    if kind == "limits":
        value = resources.limits.get(name) or allocatable.get(name)
    else:
        value = resources.requests.get(name) or resources.limits.get(name)
    divisor = wanted.divisor.nanos if wanted.divisor is not None and wanted.divisor.nanos else 10**9
    return str(-(-value.nanos // divisor)) if value is not None else "0"


def _lines(texts: Mapping[str, str]) -> str:
    """Pairs as Go's fmt writes them, quoted, sorted by key."""
    return "\n".join(f'{key}="{_escaped(value)}"' for key, value in sorted(texts.items()))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
