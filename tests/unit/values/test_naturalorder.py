"""Natural order of names, in lists of nodes and in reports."""

from drachma import testing
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.reports import utilisation
from drachma.values import naturalorder

_NAMES = ["a", "node-1", "node-2", "node-10", "node-10-b", "rack-2-node-1"]


def test_numbers_count_as_numbers() -> None:
    shuffled = ["node-10", "rack-2-node-1", "node-2", "a", "node-10-b", "node-1"]
    assert sorted(shuffled, key=naturalorder.key) == _NAMES


def test_reports_list_nodes_in_natural_order() -> None:
    nodes = [testing.node(name).build() for name in reversed(_NAMES)]
    slices = [
        testing.resource_slice(f"s-{name}", driver="d.example.com", pool=name).on_node(name).devices("d0").build()
        for name in reversed(_NAMES)
    ]
    measured = utilisation.measure(Simulation(ClusterState.of([*nodes, *slices])).snapshot)
    assert [each.node for each in measured.nodes] == _NAMES
    assert [each.node for each in measured.pools] == _NAMES
