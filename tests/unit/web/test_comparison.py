"""Before and after: nodes that differ come first, and devices that differ are marked."""

from drachma.claims import identity
from drachma.simulate import nodeusage
from drachma.simulate.reports.utilisation import Condition, DeviceUse, PoolUse, Utilisation
from drachma.web import comparison


def _utilisation(uses: dict[str, str]) -> Utilisation:
    """Return a cluster: letters for each node's devices, ``u`` for used and ``f`` for free."""
    conditions = {"u": Condition.USED, "f": Condition.FREE}
    by_node = {
        name: (
            PoolUse(
                identity.PoolID("gpu.example.com", name),
                name,
                tuple(
                    DeviceUse(f"gpu-{place}", conditions[letter], 0.0, ("default/claim",) if letter == "u" else ())
                    for place, letter in enumerate(letters)
                ),
            ),
        )
        for name, letters in uses.items()
    }
    return Utilisation(tuple(nodeusage.NodeUsage(name, {}, 0, 0) for name in uses), by_node)


def test_changed_and_new_nodes_come_first() -> None:
    before = _utilisation({"a": "uf", "b": "ff"})
    after = _utilisation({"a": "uf", "b": "uf", "c": "f"})
    result = comparison.compare(before, after)
    assert [(node.name, node.is_changed, node.is_new) for node in result.nodes] == [
        ("b", True, False),
        ("c", True, True),
        ("a", False, False),
    ]
    assert [(cell.state, cell.is_changed) for cell in result.nodes[0].after] == [("used", True), ("free", False)]
    assert "default/claim" in result.nodes[0].after[0].title
    assert (result.used_before, result.used_after, result.devices_before, result.devices_after) == (1, 2, 4, 5)


def test_long_rows_and_many_nodes_are_cut_and_counted() -> None:
    before = _utilisation({f"node-{number:03}": "f" * 200 for number in range(70)})
    after = _utilisation({f"node-{number:03}": "f" * 199 + "u" for number in range(70)})
    result = comparison.compare(before, after)
    assert len(result.nodes) == 60
    assert (result.more_changed, result.more_unchanged) == (10, 0)
    row = result.nodes[0]
    assert (len(row.after), row.hidden) == (128, 72)
    assert row.after[-1].is_changed
