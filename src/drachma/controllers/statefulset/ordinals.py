"""Ordinals: the numbers that pods of a stateful set have, what follows from them, and the pods themselves. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from drachma.api import pod, statefulset
from drachma.claims import ownership
from drachma.controllers.workload import history, podtemplates

Set = statefulset.StatefulSet

NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
ROLLING: Final = "RollingUpdate"

_NAME: Final = re.compile(r"(.*)-([0-9]+)", re.ASCII)
_HIGHEST: Final = 2**31 - 1


def replicas(of: Set) -> int:
    """How many pods a set wants."""
    return 1 if of.spec.replicas is None else of.spec.replicas


def numbers(of: Set) -> range:
    """The ordinals of a set."""
    first = of.spec.ordinals.start if of.spec.ordinals is not None else 0
    return range(first, first + replicas(of))


def ordinal(of: pod.Pod) -> int:
    """The ordinal in a pod's name; -1 where it has none."""
    match = _NAME.fullmatch(of.metadata.name)
    number = int(match[2]) if match is not None else -1
    return number if number <= _HIGHEST else -1


def is_member(of: pod.Pod, owner: Set) -> bool:
    """Whether a pod's name is one of a set's."""
    match = _NAME.fullmatch(of.metadata.name)
    return match is not None and match[1] == owner.metadata.name


def pod_name(owner: Set, number: int) -> str:
    return f"{owner.metadata.name}-{number}"


def labels(owner: Set, number: int) -> dict[str, str]:
    """What the labels of a pod say of who it is."""
    return {NAME_LABEL: pod_name(owner, number), INDEX_LABEL: str(number)}


def has_identity(of: pod.Pod, owner: Set) -> bool:
    """Whether a pod is called as it should be, and says so."""
    name = pod_name(owner, ordinal(of))
    return of.metadata.name == name and of.metadata.labels.get(NAME_LABEL) == name


def revision(of: pod.Pod) -> str:
    """The name of the revision that a pod is of."""
    return of.metadata.labels.get(history.HASH, "")


def is_of_current(owner: Set, number: int) -> bool:
    """Whether a new pod is of the set's current revision, and not of its newest: below the partition of an update."""
    strategy = owner.spec.update_strategy
    first = numbers(owner).start
    if strategy.rolling_update is not None:
        return number < first + (strategy.rolling_update.partition or 0)
    return strategy.type == ROLLING and number < first + owner.status.current_replicas


def claim_name(owner: Set, claim: Mapping[str, Any], number: int) -> str:
    """The name of the volume claim that a pod has of a template."""
    return f"{claim['metadata']['name']}-{pod_name(owner, number)}"


def claim_document(owner: Set, claim: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The volume claim that a pod has of a template, as it is created."""
    metadata = claim["metadata"]
    chosen = owner.spec.selector.match_labels if owner.spec.selector is not None else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            **metadata,
            "name": claim_name(owner, claim, number),
            "namespace": owner.metadata.namespace,
            "labels": {**(metadata.get("labels") or {}), **chosen},
        },
        "spec": claim.get("spec") or {},
    }


def pod_document(owner: Set, number: int, *, template: Mapping[str, Any], revision_name: str) -> dict[str, Any]:
    """The pod of an ordinal, as it is created."""
    document = podtemplates.pod_document(template, owner=ownership.reference(owner), namespace=owner.metadata.namespace)
    metadata, spec = document["metadata"], document["spec"]
    metadata["name"] = pod_name(owner, number)
    metadata["labels"] |= {**labels(owner, number), history.HASH: revision_name}
    spec["hostname"] = metadata["name"]
    if owner.spec.service_name:
        spec["subdomain"] = owner.spec.service_name
    volumes = [
        {
            "name": each["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(owner, each, number)},
        }
        for each in owner.spec.volume_claim_templates
    ]
    own = {each["name"] for each in volumes}
    volumes += [each for each in spec.get("volumes") or () if each.get("name") not in own]
    if volumes:
        spec["volumes"] = volumes
    return document
