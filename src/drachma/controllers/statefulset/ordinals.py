"""Ordinals of the pods of a stateful set, and the documents of pods and claims. Pure."""

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


def replicas(stateful_set: Set) -> int:
    """Return the desired number of pods of a set."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def numbers(stateful_set: Set) -> range:
    """Return the ordinals of a set."""
    first = stateful_set.spec.ordinals.start if stateful_set.spec.ordinals is not None else 0
    return range(first, first + replicas(stateful_set))


def ordinal(pod: pod.Pod) -> int:
    """Return the ordinal in a pod's name, or -1."""
    match = _NAME.fullmatch(pod.metadata.name)
    number = int(match[2]) if match is not None else -1
    return number if number <= _HIGHEST else -1


def is_member(pod: pod.Pod, owner: Set) -> bool:
    """Return True if a pod's name is one of a set's."""
    match = _NAME.fullmatch(pod.metadata.name)
    return match is not None and match[1] == owner.metadata.name


def pod_name(owner: Set, number: int) -> str:
    return f"{owner.metadata.name}-{number}"


def labels(owner: Set, number: int) -> dict[str, str]:
    """Return the labels that identify a pod."""
    return {NAME_LABEL: pod_name(owner, number), INDEX_LABEL: str(number)}


def has_identity(pod: pod.Pod, owner: Set) -> bool:
    """Return True if a pod has the name and labels of its ordinal."""
    name = pod_name(owner, ordinal(pod))
    return pod.metadata.name == name and pod.metadata.labels.get(NAME_LABEL) == name


def revision(pod: pod.Pod) -> str:
    """Return the name of the revision of a pod."""
    return pod.metadata.labels.get(history.HASH, "")


def is_of_current(owner: Set, number: int) -> bool:
    """Return True if a new pod gets the set's current revision, because it is below the partition of an update."""
    strategy = owner.spec.update_strategy
    first = numbers(owner).start
    if strategy.rolling_update is not None:
        return number < first + (strategy.rolling_update.partition or 0)
    return strategy.type == ROLLING and number < first + owner.status.current_replicas


def claim_name(owner: Set, claim: Mapping[str, Any], number: int) -> str:
    """Return the name of the volume claim of a pod for a template."""
    return f"{claim['metadata']['name']}-{pod_name(owner, number)}"


def claim_document(owner: Set, claim: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a new volume claim of a pod for a template."""
    metadata = claim["metadata"]
    selector_labels = owner.spec.selector.match_labels if owner.spec.selector is not None else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            **metadata,
            "name": claim_name(owner, claim, number),
            "namespace": owner.metadata.namespace,
            "labels": {**(metadata.get("labels") or {}), **selector_labels},
        },
        "spec": claim.get("spec") or {},
    }


def pod_document(owner: Set, number: int, *, template: Mapping[str, Any], revision_name: str) -> dict[str, Any]:
    """Return a new pod of an ordinal."""
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
