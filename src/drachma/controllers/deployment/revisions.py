"""Templates and revisions: which ReplicaSet is of a deployment's template; names and numbers of sets. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma.api import deployment, replicaset
from drachma.controllers.workload import templatehashes

REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
HASH: Final = "pod-template-hash"

_OWN: Final = frozenset({REVISION, HISTORY, DESIRED, MOST, "deprecated.deployment.rollback.to"})
_NOT_COPIED: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})


def is_of_template(of: replicaset.ReplicaSet, template: Mapping[str, Any]) -> bool:
    """Whether a set is of a template, but for the label that names the template."""
    return _without_hash(of.spec.template) == _without_hash(template)


def revision(of: replicaset.ReplicaSet) -> int:
    """The number of a set, counted over a deployment's templates; 0 where it has none."""
    text = of.metadata.annotations.get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def most(of: replicaset.ReplicaSet) -> int:
    """How many pods the deployment allowed when the set was last scaled; 0 where that is not known."""
    text = of.metadata.annotations.get(MOST, "")
    return int(text) if text.isdecimal() else 0


def newest_revision(sets: Iterable[replicaset.ReplicaSet]) -> int:
    return max(map(revision, sets), default=0)


def marks(wanted: deployment.Deployment, number: int, before: Mapping[str, str]) -> dict[str, str]:
    """What a set's annotations are to say: those of the deployment, its revision, and revisions that it had before."""
    copied = {
        key: value for key, value in wanted.metadata.annotations.items() if key not in _OWN and key not in _NOT_COPIED
    }
    merged = {**before, **copied, REVISION: str(number)}
    old = before.get(REVISION, "")
    if old.isdecimal() and int(old) < number:
        merged[HISTORY] = ",".join(filter(None, (before.get(HISTORY, ""), old)))
    return merged


def new_set(wanted: deployment.Deployment, number: int, *, replicas: int, most_pods: int) -> dict[str, Any]:
    """The ReplicaSet of a deployment's template, as it is created."""
    template = copy.deepcopy(dict(wanted.spec.template))
    name = templatehashes.template_hash(template, wanted.status.collision_count or 0)
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), HASH: name}
    selector = wanted.spec.selector
    match_labels = {**(selector.match_labels if selector is not None else {}), HASH: name}
    expressions = [
        {"key": each.key, "operator": each.operator, "values": list(each.values)}
        for each in (selector.match_expressions if selector is not None else ())
    ]
    desired = 1 if wanted.spec.replicas is None else wanted.spec.replicas
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{wanted.metadata.name}-{name}",
            "namespace": wanted.metadata.namespace,
            "labels": metadata["labels"],
            "annotations": {
                **marks(wanted, number, {}),
                DESIRED: str(desired),
                MOST: str(most_pods),
            },
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": int(wanted.spec.min_ready_seconds),
            "selector": {"matchLabels": match_labels, **({"matchExpressions": expressions} if expressions else {})},
            "template": template,
        },
    }


def _without_hash(template: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (metadata.pop("labels", None) or {}).items() if key != HASH}
    metadata.pop("creationTimestamp", None)
    return {**template, "metadata": {**metadata, "labels": labels}}
