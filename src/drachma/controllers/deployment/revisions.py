"""Templates and revisions: the ReplicaSet of a deployment's template, and names and numbers of sets. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma.api import deployment, replicaset
from drachma.controllers.workload import podtemplates

REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
HASH: Final = "pod-template-hash"

_OWN: Final = frozenset({REVISION, HISTORY, DESIRED, MOST, "deprecated.deployment.rollback.to"})
_NOT_COPIED: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})


def has_template(replica_set: replicaset.ReplicaSet, template: Mapping[str, Any]) -> bool:
    """Return True if a set has a template, except for the label that names the template."""
    return _drop_hash(replica_set.spec.template) == _drop_hash(template)


def revision(replica_set: replicaset.ReplicaSet) -> int:
    """Return the revision of a set among a deployment's templates, or 0."""
    text = replica_set.metadata.annotations.get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def most(replica_set: replicaset.ReplicaSet) -> int:
    """Return the number of pods that the deployment allowed when the set was last scaled, or 0 if unknown."""
    text = replica_set.metadata.annotations.get(MOST, "")
    return int(text) if text.isdecimal() else 0


def newest_revision(sets: Iterable[replicaset.ReplicaSet]) -> int:
    return max(map(revision, sets), default=0)


def marks(deployment: deployment.Deployment, number: int, before: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations of a set: those of the deployment, its revision, and its earlier revisions."""
    copied = {
        key: value
        for key, value in deployment.metadata.annotations.items()
        if key not in _OWN and key not in _NOT_COPIED
    }
    merged = {**before, **copied, REVISION: str(number)}
    old = before.get(REVISION, "")
    if old.isdecimal() and int(old) < number:
        merged[HISTORY] = ",".join(filter(None, (before.get(HISTORY, ""), old)))
    return merged


def new_set(deployment: deployment.Deployment, number: int, *, replicas: int, most_pods: int) -> dict[str, Any]:
    """Return a new ReplicaSet for a deployment's template."""
    template = copy.deepcopy(dict(deployment.spec.template))
    name = podtemplates.template_hash(template, deployment.status.collision_count or 0)
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), HASH: name}
    selector = deployment.spec.selector
    match_labels = {**(selector.match_labels if selector is not None else {}), HASH: name}
    expressions = [
        {"key": each.key, "operator": each.operator, "values": list(each.values)}
        for each in (selector.match_expressions if selector is not None else ())
    ]
    desired = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{deployment.metadata.name}-{name}",
            "namespace": deployment.metadata.namespace,
            "labels": metadata["labels"],
            "annotations": {
                **marks(deployment, number, {}),
                DESIRED: str(desired),
                MOST: str(most_pods),
            },
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": int(deployment.spec.min_ready_seconds),
            "selector": {"matchLabels": match_labels, **({"matchExpressions": expressions} if expressions else {})},
            "template": template,
        },
    }


def _drop_hash(template: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (metadata.pop("labels", None) or {}).items() if key != HASH}
    metadata.pop("creationTimestamp", None)
    return {**template, "metadata": {**metadata, "labels": labels}}
