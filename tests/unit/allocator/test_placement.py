"""Which nodes a slice or device is for."""

import pytest

from drachma import errors
from drachma.allocator import placement
from drachma.api import nodeselector
from drachma.testing import node

_NODE = placement.Node("n1", {"zone": "a"})


def _selector(operator: str, *values: str) -> nodeselector.NodeSelector:
    requirement = nodeselector.NodeSelectorRequirement(key="zone", operator=operator, values=values)
    return nodeselector.NodeSelector(
        node_selector_terms=(nodeselector.NodeSelectorTerm(match_expressions=(requirement,)),)
    )


@pytest.mark.parametrize(
    ("node_name", "all_nodes", "selector", "want"),
    [
        pytest.param("n1", None, None, True, id="by-name"),
        pytest.param("n2", None, None, False, id="by-another-name"),
        pytest.param("n2", True, None, False, id="the-name-comes-first"),
        pytest.param(None, True, None, True, id="all-nodes"),
        pytest.param("", True, None, True, id="an-empty-name-is-none"),
        pytest.param(None, None, _selector("In", "a", "b"), True, id="selected"),
        pytest.param(None, None, _selector("In", "b"), False, id="not-selected"),
        pytest.param(None, None, None, False, id="nothing-known"),
        pytest.param(None, False, None, False, id="not-all-nodes"),
    ],
)
def test_covers(
    node_name: str | None, all_nodes: bool | None, selector: nodeselector.NodeSelector | None, want: bool
) -> None:
    assert placement.Placement(node_name, all_nodes=all_nodes, selector=selector).covers(_NODE) is want


def test_a_selector_that_does_not_compile_is_refused_when_it_is_used() -> None:
    placed = placement.Placement(None, all_nodes=None, selector=_selector("Near", "a"))
    with pytest.raises(errors.AllocationError) as caught:
        placed.covers(_NODE)
    assert str(caught.value) == (
        "failed to parse node selector &NodeSelector{NodeSelectorTerms:[]NodeSelectorTerm{NodeSelectorTerm{"
        "MatchExpressions:[]NodeSelectorRequirement{NodeSelectorRequirement{Key:zone,Operator:Near,Values:[a],},},"
        "MatchFields:[]NodeSelectorRequirement{},},},}: nodeSelectorTerms[0].matchExpressions[0].operator: "
        'Unsupported value: "Near": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    )


def test_a_node_of_the_api_is_read() -> None:
    assert placement.Node.of(node("n1", labels={"zone": "a"}).build(), declared_features=("F",)) == placement.Node(
        "n1", {"zone": "a"}, ("F",)
    )
