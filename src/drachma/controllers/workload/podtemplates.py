"""Pods as the templates of workloads describe them. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from drachma.values import names


def pod_document(template: Mapping[str, Any], *, owner: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """A pod of a template, as it is created for the owner that a reference names; its own to change."""
    described = copy.deepcopy(dict(template))
    metadata = described.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": _prefix(owner["name"]),
            "namespace": namespace,
            "labels": metadata.get("labels") or {},
            "annotations": metadata.get("annotations") or {},
            "finalizers": metadata.get("finalizers") or [],
            "ownerReferences": [dict(owner)],
        },
        "spec": described.get("spec") or {},
    }


def _prefix(name: str) -> str:
    """What the names of pods begin with; the dash is left out where it would make them too long."""
    prefix = f"{name}-"
    # A name that is made up gets a letter in the place where its own part begins.
    return name if names.dns1123_subdomain(f"{name}a") else prefix
