"""Objects of v1alpha2 that are good, one of each kind, and how others are made of them."""

import copy
import datetime as dt
from typing import Any

from drachma.api import codec, defaults
from drachma.validation.context import Context

NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
CONTEXT = Context(now=NOW)
DRIVER = "cards.dra.example.com"
REFERENCE = {"apiGroup": "dra.example.com", "kind": "CardParameters", "name": "my-parameters"}
NODES = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["worker-1"]}]}]}
CONSUMER = {"resource": "pods", "name": "p", "uid": "u"}
SELECTOR = 'attributes["runtimeVersion"] >= "v12.0.0" && attributes["memory"] >= "32Gi"'
GOOD: dict[str, dict[str, Any]] = {
    "ResourceClass": {
        "driverName": DRIVER,
        "structuredParameters": True,
        "parametersRef": {**REFERENCE, "namespace": "n"},
        "suitableNodes": NODES,
    },
    "ResourceClaim": {
        "spec": {"resourceClassName": "cards", "parametersRef": REFERENCE, "allocationMode": "Immediate"}
    },
    "ResourceClaimTemplate": {
        "spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"resourceClassName": "cards", "parametersRef": REFERENCE}}
    },
    "ResourceClaimParameters": {
        "generatedFrom": {**REFERENCE, "uid": "foobar-uid"},
        "shareable": True,
        "vendorParameters": {"kind": "CardParameters"},
        "requests": [
            {
                "driverName": DRIVER,
                "namedResourcesWithAttributes": {"required": [{"selector": SELECTOR}]},
            }
        ],
    },
    "ResourceClassParameters": {
        "generatedFrom": {**REFERENCE, "uid": "foobar-uid"},
        "vendorParameters": {"kind": "CardClassParameters"},
        "filters": [
            {
                "driverName": DRIVER,
                "namedResourcesWithAttributes": {"selector": 'attributes["memory"] <= "16Gi"'},
            }
        ],
    },
    "NodeResourceSlice": {
        "spec": {
            "nodeName": "worker-1",
            "driverName": DRIVER,
            "namedResourcesWithAttributes": [
                {
                    "name": "gpu-0",
                    "attributes": [
                        {"name": "UUID", "string": "GPU-ceea231c"},
                        {"name": "driverVersion", "version": "v1.2"},
                        {"name": "memory", "quantity": "16Gi"},
                        {"name": "ecc", "bool": False},
                        {"name": "cores", "int": 0},
                        {"name": "lanes", "intSlice": [1, 2]},
                        {"name": "modes", "stringSlice": ["a"]},
                    ],
                }
            ],
        }
    },
    "ResourceSlice": {
        "nodeName": "worker-1",
        "driverName": DRIVER,
        "namedResources": {
            "instances": [{"name": "gpu-0", "attributes": [{"name": "lanes", "intSlice": {"ints": [1, 2]}}]}]
        },
    },
}
OF_1_30: dict[str, dict[str, Any]] = {
    "ResourceClaimParameters": {
        "driverRequests": [
            {
                "driverName": DRIVER,
                "vendorParameters": {"a": 1},
                "requests": [{"vendorParameters": {"b": 2}, "namedResources": {"selector": 'attributes.bool["ecc"]'}}],
            }
        ]
    },
    "ResourceClassParameters": {
        "vendorParameters": [{"driverName": DRIVER, "parameters": {"a": 1}}],
        "filters": [{"driverName": DRIVER, "namedResources": {"selector": "true"}}],
    },
}
ALLOCATION: dict[str, Any] = {
    "resourceHandles": [
        {
            "driverName": DRIVER,
            "structuredData": {
                "vendorClassParameters": {"a": 1},
                "vendorClaimParameters": {"b": 2},
                "nodeName": "worker-1",
                "namedResourcesWithAttributes": {"resources": ["gpu-1"]},
            },
        }
    ],
    "availableOnNodes": NODES,
    "shareable": True,
}


def written(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "o", "uid": "u", "resourceVersion": "1"}
    if kind in ("ResourceClaim", "ResourceClaimTemplate", "ResourceClaimParameters"):
        metadata["namespace"] = "n"
    return {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": kind,
        "metadata": metadata,
        **copy.deepcopy(content),
    }


def read(kind: str, content: dict[str, Any]) -> Any:
    return defaults.apply(codec.decode(written(kind, content)), now=NOW)


def changed(kind: str, path: str, value: Any) -> dict[str, Any]:
    """A good object with another value under a path; ``...`` takes it away."""
    document: Any = copy.deepcopy(GOOD[kind])
    *above, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    place = document
    for part in above:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return dict(document)
