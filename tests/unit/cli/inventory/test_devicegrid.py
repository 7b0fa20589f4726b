"""The grid of devices: marks, columns, and the compact form."""

from drachma.cli.inventory import cluster as clusters
from drachma.cli.inventory import devicegrid
from tests.unit.cli.inventory.test_rows import a_claim, a_slice

CLUSTER = clusters.Cluster(
    slices=tuple(a_slice(f"s{number}", node=f"n{number}", devices=("gpu-0", "gpu-1")) for number in (1, 2, 10)),
    claims=(
        a_claim("one", ("n1", "gpu-1")),
        a_claim("two", ("n10", "gpu-0"), ("n10", "gpu-1")),
        a_claim("three", ("n10", "gpu-1")),
        a_claim("gone", ("n2", "gpu-9")),
    ),
)


def grid(*, width: int = 80, height: int = 24) -> list[str]:
    return list(devicegrid.lines(CLUSTER, width=width, height=height))


def test_one_mark_a_device_with_nodes_down_the_columns() -> None:
    assert grid(width=40) == [
        "gpu.example.com: 4 of 7 in use (57 %), 4 nodes",
        "<none> !  1/1   n2     ·· 0/2",
        "n1     ·■ 1/2   n10    ■▣ 2/2",
        "",
        "· free   ■ allocated   ▣ shared   x tainted   ! not published",
    ]
    assert len(grid(width=10)) == len(grid(width=40)) + 2, "one column"


def test_one_mark_a_node_if_the_terminal_is_too_small() -> None:
    assert grid(width=40, height=3) == [
        "gpu.example.com: 4 of 7 in use (57 %), 4 nodes",
        "<none> █▒·█",
        "",
        "one mark a node: · all free   ░▒▓ partly in use   █ full",
    ]


def test_a_cluster_without_devices() -> None:
    assert list(devicegrid.lines(clusters.Cluster(), width=80, height=24)) == ["No devices are published."]


def test_many_devices_of_a_node_are_counted() -> None:
    names = tuple(f"gpu-{number}" for number in range(64))
    claim = a_claim("half", *(("n1", name) for name in names[:32]))
    cluster = clusters.Cluster(slices=(a_slice("s", node="n1", devices=names),), claims=(claim,))
    line = list(devicegrid.lines(cluster, width=80, height=24))[1]
    assert line == f"n1 {'■' * 16}{'·' * 16} 32/64"
