"""Pods of a daemon set: suitable nodes, the pod document, and the template that a pod has. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import daemonset, hooks, node, pod
from drachma.claims import nodeaffinity, ownership, taints
from drachma.controllers.workload import history, podtemplates
from drachma.values import nodes

DaemonSet = daemonset.DaemonSet

GENERATION: Final = "deprecated.daemonset.template.generation"
"""Deprecated annotation of daemon sets; their pods have its value as a label."""

_GENERATION_LABEL: Final = "pod-template-generation"
_NAME_FIELD: Final = "metadata.name"
_PRESSURES: Final = ("disk-pressure", "memory-pressure", "pid-pressure")


class Fit(NamedTuple):
    """Decision about a node: whether it should run a pod, and whether an existing pod may stay."""

    should_run: bool
    may_stay: bool


class Placement:
    """Nodes for the pods of one daemon set."""

    def __init__(self, daemon_set: DaemonSet) -> None:
        """Read the template. Raises DecodeError if it is invalid."""
        spec = {**(daemon_set.spec.template.get("spec") or {})}
        spec["tolerations"] = _add_tolerations(spec)
        try:
            self._spec: Final = msgspec.convert(spec, pod.PodSpec, dec_hook=hooks.decode)
        except msgspec.ValidationError as error:
            raise errors.DecodeError(f"daemon set {daemon_set.metadata.name}: template: {error}") from None
        selector = nodeaffinity.required(self._spec)
        terms = None if selector is None else nodeaffinity.terms(selector.node_selector_terms)
        self._affinity: Final = nodes.RequiredAffinity(self._spec.node_selector, terms)

    def fit(self, on: node.Node) -> Fit:
        """Decide whether a node suits the pods."""
        name = on.metadata.name
        if self._spec.node_name not in ("", name) or not self._matches(on):
            return Fit(should_run=False, may_stay=False)
        untolerated = [each for each in on.spec.taints if not taints.is_tolerated(each, self._spec.tolerations)]
        effects = {each.effect for each in untolerated}
        if effects & {taints.NO_SCHEDULE, taints.NO_EXECUTE}:
            return Fit(should_run=False, may_stay=taints.NO_EXECUTE not in effects)
        return Fit(should_run=True, may_stay=True)

    def _matches(self, on: node.Node) -> bool:
        try:
            return self._affinity.matches(on.metadata.labels, on.metadata.name)
        except errors.InvalidValueError:
            return False


def node_of(pod: pod.Pod) -> str:
    """Return the node that a pod runs on or is created for, or an empty text."""
    if pod.spec.node_name:
        return pod.spec.node_name
    selector = nodeaffinity.required(pod.spec)
    for term in selector.node_selector_terms if selector is not None else ():
        for each in term.match_fields:
            if each.key == _NAME_FIELD and each.operator == "In":
                return each.values[0] if len(each.values) == 1 else ""
    return ""


def is_updated(pod: pod.Pod, owner: DaemonSet, *, mark: str) -> bool:
    """Return True if a pod has the daemon set's template, which has this hash."""
    if pod.metadata.labels.get(history.HASH) == mark:
        return True
    generation = owner.metadata.annotations.get(GENERATION, "")
    return generation.isdecimal() and pod.metadata.labels.get(_GENERATION_LABEL) == generation


def pod_document(owner: DaemonSet, on: str, *, mark: str) -> dict[str, Any]:
    """Return a new pod for a node."""
    document = podtemplates.pod_document(
        owner.spec.template, owner=ownership.reference(owner), namespace=owner.metadata.namespace
    )
    generation = owner.metadata.annotations.get(GENERATION, "")
    if generation.isdecimal():
        document["metadata"]["labels"][_GENERATION_LABEL] = generation
    document["metadata"]["labels"][history.HASH] = mark
    spec = document["spec"]
    spec["tolerations"] = _add_tolerations(spec)
    affinity = spec.setdefault("affinity", {})
    required = affinity.setdefault("nodeAffinity", {}).setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    field = {"key": _NAME_FIELD, "operator": "In", "values": [on]}
    required["nodeSelectorTerms"] = [{"matchFields": [field]}]
    return document


def _add_tolerations(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a template's tolerations and those of all daemons, which keep them on nodes with problems."""
    tolerations = copy.deepcopy(list(spec.get("tolerations") or ()))
    own = [(taints.NOT_READY, taints.NO_EXECUTE), (taints.UNREACHABLE, taints.NO_EXECUTE)]
    own += [(f"node.kubernetes.io/{each}", taints.NO_SCHEDULE) for each in _PRESSURES]
    own.append((taints.UNSCHEDULABLE, taints.NO_SCHEDULE))
    if spec.get("hostNetwork"):
        own.append(("node.kubernetes.io/network-unavailable", taints.NO_SCHEDULE))
    for key, effect in own:
        toleration = {"key": key, "operator": "Exists", "effect": effect}
        same = [position for position, each in enumerate(tolerations) if _is_same(each, toleration)]
        for position in same:
            tolerations[position] = toleration
        if not same:
            tolerations.append(toleration)
    return tolerations


def _is_same(one: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return True if two tolerations match the same taints, for any time."""
    return all(one.get(field, "") == second.get(field, "") for field in ("key", "effect", "operator", "value"))
