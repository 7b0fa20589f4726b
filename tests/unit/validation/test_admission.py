"""Slices whose devices are a node's own resources need nodes that account for them."""

from typing import Any

import pytest

from drachma.api import gates
from drachma.validation import admission, refusal
from tests.unit.validation import builders
from tests.unit.validation.builders import SLICE, Document, changed

FEATURE = frozenset({admission.FEATURE})
TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}


def node(name: str, *, features: frozenset[str] = frozenset(), **labels: str) -> admission.DeclaredNode:
    return admission.DeclaredNode(name=name, labels=labels, declared_features=features)


def detail_of(selection: Document, *nodes: admission.DeclaredNode, **facts: Any) -> str | None:
    def change(document: Document) -> None:
        del document["spec"]["nodeName"]
        document["spec"].update(selection)
        document["spec"]["devices"][0]["nodeAllocatableResources"] = {"cpu": {"overhead": {"perPod": "1"}}}

    cluster = {each.name: each for each in nodes}
    given = builders.read(changed(SLICE, change))
    return admission.slice_refusal(given, cluster, **{"gates": gates.ALL, **facts})


@pytest.mark.parametrize(
    ("selection", "nodes", "want"),
    [
        pytest.param({"nodeName": "a"}, [], 'node "a" not found for device "gpu-0"', id="no-such-node"),
        pytest.param(
            {"nodeName": "a"},
            [node("a")],
            'node "a" does not support DRANodeAllocatableResources feature',
            id="node-without-feature",
        ),
        pytest.param({"nodeName": "a"}, [node("a", features=FEATURE), node("b")], None, id="node-with-feature"),
        pytest.param({"allNodes": True}, [], None, id="all-of-no-nodes"),
        pytest.param(
            {"allNodes": True},
            [node("a", features=FEATURE), node("b")],
            'node "b" does not support DRANodeAllocatableResources feature',
            id="one-of-all-without-feature",
        ),
        pytest.param({"nodeSelector": TERMS}, [node("a")], None, id="selector-matches-nothing"),
        pytest.param(
            {"nodeSelector": TERMS},
            [node("a", gpu="yes")],
            'node "a" does not support DRANodeAllocatableResources feature',
            id="selected-node-without-feature",
        ),
        pytest.param(
            {},
            [],
            'device "gpu-0" in ResourceSlice has NodeAllocatableResources but does not map to any nodes',
            id="nowhere",
        ),
    ],
)
def test_refusals(selection: Document, nodes: list[admission.DeclaredNode], want: str | None) -> None:
    assert detail_of(selection, *nodes) == want


def test_other_slices_are_not_looked_at() -> None:
    assert admission.slice_refusal(builders.read(SLICE), {}, gates=gates.ALL) is None
    off = gates.ALL.switched({"DRANodeAllocatableResources": False})
    assert detail_of({"nodeName": "a"}, gates=off) is None


def test_status_speaks_of_the_resource() -> None:
    document = refusal.forbidden("no", group="resource.k8s.io", plural="resourceslices", name="foo")
    assert document["message"] == 'resourceslices.resource.k8s.io "foo" is forbidden: no'
    assert document["details"] == {"name": "foo", "group": "resource.k8s.io", "kind": "resourceslices"}
    assert (document["code"], document["reason"]) == (403, "Forbidden")
