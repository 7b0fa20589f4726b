"""Match of a flavor's nodes with the pods of a set: taints, node selectors, node affinity."""

from __future__ import annotations

from collections.abc import Iterable

from drachma.api import node, pod
from drachma.claims import nodeaffinity, taints
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.kinds import resourceflavor, workload
from drachma.values import nodes, quotation


def mismatch(flavor: resourceflavor.ResourceFlavor, pod_sets: Iterable[workload.PodSet], *, gates: Gates) -> str | None:
    """Return the reason why a flavor does not suit all of the pod sets, or None if it does."""
    name = flavor.metadata.name
    for each in pod_sets:
        problem = _topology_mismatch(flavor, each) if gates.on(Gate.TAS) else None
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


def _topology_mismatch(flavor: resourceflavor.ResourceFlavor, pod_set: workload.PodSet) -> str | None:
    """Return the mismatch of pods that request a topology and a flavor that has one.

    Differs from upstream: topology aware scheduling is not implemented, so pods never get such a flavor.
    """
    request = pod_set.topology_request
    if request is None and flavor.spec.topology_name is None:
        return None
    quoted = quotation.quote(flavor.metadata.name)
    is_asked = request is not None and any(
        (
            request.required,
            request.preferred,
            request.unconstrained is not None,
            request.pod_set_slice_required_topology,
            request.pod_set_slice_size,
            request.podset_slice_required_topology_constraints,
        )
    )
    if flavor.spec.topology_name is None:
        return f"Flavor {quoted} does not support TopologyAwareScheduling" if is_asked else None
    if is_asked:
        return f"Flavor {quoted} information missing in TAS cache"
    return f"Flavor {quoted} supports only TopologyAwareScheduling"


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
