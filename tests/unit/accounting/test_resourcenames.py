"""Resources that a node's ledger counts, and their units."""

import pytest

from drachma.accounting import resourcenames
from drachma.values import quantity


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("cpu", True, id="cpu"),
        pytest.param("memory", True, id="memory"),
        pytest.param("ephemeral-storage", True, id="ephemeral-storage"),
        pytest.param("pods", False, id="pods-are-counted-apart"),
        pytest.param("hugepages-2Mi", True, id="huge-pages"),
        pytest.param("attachable-volumes-csi-x", True, id="volumes"),
        pytest.param("example.com/gpu", True, id="extended"),
        pytest.param("deviceclass.resource.kubernetes.io/gpu", True, id="device-class"),
        pytest.param("gpu", False, id="unknown-without-domain"),
    ],
)
def test_is_counted(name: str, want: bool) -> None:
    assert resourcenames.is_counted(name) is want


@pytest.mark.parametrize(
    ("name", "is_extended", "may_be_devices"),
    [
        pytest.param("example.com/gpu", True, True, id="a-domain"),
        pytest.param("cpu", False, False, id="native"),
        pytest.param("kubernetes.io/x", False, False, id="kubernetes-own-domain"),
        pytest.param("requests.example.com/gpu", False, False, id="a-quota-name"),
        pytest.param("example.com/" + "x" * 64, False, False, id="too-long"),
        pytest.param("deviceclass.resource.kubernetes.io/gpu", False, True, id="named-after-a-class"),
    ],
)
def test_extended_resources(name: str, is_extended: bool, may_be_devices: bool) -> None:
    assert resourcenames.is_extended(name) is is_extended
    assert resourcenames.may_be_devices(name) is may_be_devices


@pytest.mark.parametrize(
    ("name", "text", "want"),
    [
        pytest.param("cpu", "1500m", 1500, id="cpu-in-thousandths"),
        pytest.param("cpu", "1u", 1, id="cpu-rounded-up"),
        pytest.param("memory", "1Ki", 1024, id="memory-in-bytes"),
        pytest.param("memory", "1500m", 2, id="fractions-rounded-up"),
        pytest.param("example.com/gpu", "0", 0, id="nothing"),
    ],
)
def test_counted(name: str, text: str, want: int) -> None:
    assert resourcenames.counted(name, quantity.Quantity.parse(text).nanos) == want


def test_amounts_are_sorted_without_zeros_and_what_is_not_counted() -> None:
    exact = {"memory": 2 * 10**9, "cpu": 10**9, "example.com/gpu": 0, "gpu": 10**9}
    assert resourcenames.amounts(exact) == (("cpu", 1000), ("memory", 2))


def test_what_a_node_offers_keeps_zeros() -> None:
    offered = {name: quantity.Quantity.parse(text) for name, text in {"cpu": "4", "example.com/gpu": "0"}.items()}
    assert resourcenames.allocatable(offered) == {"cpu": 4000, "example.com/gpu": 0}
