"""Stand-ins are known by their names, and allocations say where their devices may be."""

import pytest

from drachma.api import nodeselector, resourceclaim
from drachma.claims import standins
from drachma.testing import claim


@pytest.mark.parametrize(
    ("pool", "want", "node"),
    [
        pytest.param("worker-1/v1alpha2", True, "worker-1", id="of-a-node"),
        pytest.param("v1alpha2", True, "", id="of-no-node"),
        pytest.param("worker-1", False, "worker-1", id="a-pool-of-its-own"),
        pytest.param("my-v1alpha2", False, "my-v1alpha2", id="a-name-that-looks-alike"),
    ],
)
def test_stand_ins_are_known_by_their_names(pool: str, want: bool, node: str) -> None:
    assert (standins.is_stand_in(pool), standins.node_of_pool(pool)) == (want, node)
    assert not want or standins.pool_name(node) == pool


def allocation(*pools: str, node: str = "") -> resourceclaim.AllocationResult:
    field = nodeselector.NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    term = nodeselector.NodeSelectorTerm(match_fields=(field,))
    selector = nodeselector.NodeSelector(node_selector_terms=(term,)) if node else None
    results = [("r", "d", pool, "a") for pool in pools]
    made = claim("c").allocated(*results, node_selector=selector).build().status.allocation
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("allocated", "want"),
    [
        pytest.param(None, (), id="nothing"),
        pytest.param(allocation("p", node="n"), ("n",), id="a-node"),
        pytest.param(allocation("p", "p", node="n"), ("n",), id="two-devices-of-one-pool"),
        pytest.param(allocation("p", "q", node="n"), ("n", ""), id="one-may-be-bound-to-the-node-by-the-other"),
        pytest.param(allocation("p"), ("",), id="no-node"),
    ],
)
def test_where_devices_may_be(allocated: resourceclaim.AllocationResult | None, want: tuple[str, ...]) -> None:
    assert standins.places_of(allocated) == want
