"""The map of packages and rooms in docs/architecture.md is the one that the import contracts enforce."""

import itertools
import pathlib
import re
import tomllib

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = PROJECT / "docs" / "architecture.md"

SECTIONS = {
    "": "Layers",
    "drachma.server": "Rooms of the server",
    "drachma.scheduler": "Rooms of the scheduler",
    "drachma.node": "Rooms of the node",
    "drachma.queueing": "Rooms of queueing",
}
"""Heading of the table that shows a contract, by the contract's container."""

OUTSIDE = {"testing"}
"""Packages in the table of layers that another contract is about."""


def contracts() -> dict[str, list[list[str]]]:
    """Return the layers of each container, from the top; a layer that need not exist is left out."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = {}
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            (container,) = contract.get("containers", [""])
            layers[container] = [_names(layer) for layer in contract["layers"]]
    return layers


def _names(layer: str) -> list[str]:
    modules = [name.strip().strip("()").removeprefix("drachma.") for name in layer.split("|")]
    folders = PROJECT / "src" / "drachma"
    return [name for name in modules if name != "web" or (folders / name).exists()]


def rows(heading: str) -> list[list[str]]:
    """Return the names in the first cell of each row of the table below a heading."""
    section = DOCUMENT.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    return [re.findall(r"`(\w+)`", cell) for cell in cells]


@pytest.mark.parametrize("container", contracts())
def test_the_map_shows_what_the_contract_enforces(container: str) -> None:
    layers, table = contracts()[container], rows(SECTIONS[container])
    ranks = {name: rank for rank, layer in enumerate(layers) for name in layer}
    shown = [name for row in table for name in row if name not in OUTSIDE]
    assert sorted(shown) == sorted(ranks)
    order = [[ranks[name] for name in row if name in ranks] for row in table]
    order = [row for row in order if row]
    for above, below in itertools.pairwise(order):
        assert max(above) <= min(below), f"row with {layers[max(above)]} stands above row with {layers[min(below)]}"
