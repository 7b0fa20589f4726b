"""Match of a flavor's nodes with the pods of a set: taints, node selectors, node affinity."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drachma.api import node, pod
from drachma.claims import nodeaffinity, taints
from drachma.queueing.kinds import resourceflavor, workload
from drachma.values import nodes

Check = Callable[[resourceflavor.ResourceFlavor, workload.PodSet], str | None]
"""Returns the reason why a flavor does not suit a pod set, or None if it does."""


def mismatch(
    flavor: resourceflavor.ResourceFlavor, pod_sets: Iterable[workload.PodSet], *, topology_mismatch: Check
) -> str | None:
    """Return the reason why a flavor does not suit all of the pod sets, or None if it does."""
    name = flavor.metadata.name
    for each in pod_sets:
        problem = topology_mismatch(flavor, each)
        if problem is not None:
            return problem
        spec = each.template.spec
        marks, labels = flavor.spec.node_taints, flavor.spec.node_labels
        taint = taints.first_untolerated(marks, (*spec.tolerations, *flavor.spec.tolerations)) if marks else None
        if taint is not None:
            return f"untolerated taint {_show(taint)} in flavor {name}"
        # Only labels of the flavor matter.
        if labels and not _affinity(spec, labels.keys()).matches(labels, ""):
            return f"flavor {name} doesn't match node affinity"
    return None


def _show(taint: node.Taint) -> str:
    added = "<nil>" if taint.time_added is None else f"{taint.time_added:%Y-%m-%d %H:%M:%S} +0000 UTC"
    return f"{{{taint.key} {taint.value} {taint.effect} {added}}}"


def _affinity(spec: pod.PodSpec, keys: Iterable[str]) -> nodes.RequiredAffinity:
    """Return the required node affinity of pods, reduced to labels that the flavor gives its nodes.

    A term without remaining requirements matches any flavor, and so do all terms together.
    """
    flavor_keys = frozenset(keys)
    selector = {key: value for key, value in spec.node_selector.items() if key in flavor_keys}
    required = nodeaffinity.required(spec)
    terms: list[nodes.Term] = []
    for term in required.node_selector_terms if required is not None else ():
        expressions = [
            nodes.Expression(each.key, each.operator, each.values)
            for each in term.match_expressions
            if each.key in flavor_keys
        ]
        if not expressions:
            terms.clear()
            break
        terms.append(nodes.Term(tuple(expressions)))
    return nodes.RequiredAffinity(selector, terms or None)
