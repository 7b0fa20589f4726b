"""Small valid objects to break, and one line to say what is wrong with a broken one."""

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from drachma import validation
from drachma.api import codec, defaults
from drachma.validation import writes

NOW = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
Document = dict[str, Any]
Change = Callable[[Document], object]

CLASS: Document = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
CLAIM: Document = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "claim", "namespace": "default"},
    "spec": {
        "devices": {
            "requests": [
                {"name": "one", "exactly": {"deviceClassName": "gpu"}},
                {"name": "some", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}]},
            ]
        }
    },
}
TEMPLATE: Document = {
    **CLAIM,
    "kind": "ResourceClaimTemplate",
    "spec": {"metadata": {"labels": {"app": "x"}}, "spec": CLAIM["spec"]},
}
SLICE: Document = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "slice"},
    "spec": {
        "driver": "dra.example.com",
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "node-1",
        "devices": [
            {"name": "gpu-0", "attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "10"}}},
        ],
    },
}
COUNTERS: Document = {
    **SLICE,
    "spec": {
        **{key: value for key, value in SLICE["spec"].items() if key != "devices"},
        "sharedCounters": [{"name": "set", "counters": {"memory": {"value": "1"}}}],
    },
}
RULE: Document = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "rule"},
    "spec": {"deviceSelector": {"driver": "dra.example.com"}, "taint": {"key": "broken", "effect": "NoSchedule"}},
}
ALLOCATED: Document = {
    **CLAIM,
    "metadata": {**CLAIM["metadata"], "resourceVersion": "1"},
    "status": {
        "allocation": {
            "devices": {
                "results": [{"request": "one", "driver": "dra.example.com", "pool": "pool", "device": "gpu-0"}],
                "config": [
                    {
                        "source": "FromClass",
                        "requests": ["one"],
                        "opaque": {"driver": "dra.example.com", "parameters": {"a": 1}},
                    }
                ],
            }
        },
        "reservedFor": [{"resource": "pods", "name": "pod", "uid": "1"}],
    },
}
POD: Document = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pod", "namespace": "default", "resourceVersion": "1"},
    "spec": {
        "containers": [
            {"name": "main", "resources": {"claims": [{"name": "gpu"}], "requests": {"example.com/x": "1"}}}
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
    },
}


def changed(document: Document, change: Change) -> Document:
    """A copy of the document with one change."""
    result = copy.deepcopy(document)
    change(result)
    return result


def stored(document: Document) -> Document:
    """A copy as it would be read before an update."""
    return changed(document, lambda copied: copied["metadata"].update(resourceVersion="1"))


def put(document: Document, path: str, value: Any) -> None:
    """Set the value at a path of fields and positions, such as ``spec.devices.0.name``."""
    *steps, last = path.split(".")
    owner: Any = document
    for step in steps:
        owner = owner[int(step)] if isinstance(owner, list) else owner.setdefault(step, {})
    owner[int(last) if isinstance(owner, list) else last] = value


def setting(path: str, value: Any) -> Change:
    """The change that :func:`put` makes."""
    return lambda document: put(document, path, value)


def context(**facts: Any) -> validation.Context:
    """Circumstances in which everything is on and the namespace has no labels."""
    return validation.Context(**{"now": NOW, "namespace_labels": {}, **facts})


def read(document: Document) -> Any:
    """The object as a server has it before validation."""
    return defaults.apply(codec.decode(document), now=NOW)


def create(document: Document, **facts: Any) -> list[str]:
    """What a server says to a new object."""
    api_version = document["apiVersion"]
    return list(map(str, writes.create(read(document), context(api_version=api_version, **facts)).errors))


def update(new: Document, old: Document, **facts: Any) -> list[str]:
    """What a server says to a changed object."""
    return list(map(str, writes.update(read(new), read(old), context(**facts)).errors))


def update_status(new: Document, old: Document, **facts: Any) -> list[str]:
    """What a server says to a changed status."""
    return list(map(str, writes.update_status(read(new), read(old), context(**facts)).errors))
