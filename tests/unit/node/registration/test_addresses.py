"""Sockets and addresses of nodes."""

import resource
import socket
from collections.abc import Iterator

import pytest

from drachma.node.registration import addresses


@pytest.fixture
def simulated() -> Iterator[addresses.Addresses]:
    node_addresses = addresses.simulated_addresses(["a", "b"])
    yield node_addresses
    for each in node_addresses.sockets:
        each.close()


def _hosts(node_addresses: addresses.Addresses) -> set[str]:
    return {str(each.getsockname()[0]) for each in node_addresses.sockets}


def test_each_simulated_node_has_a_loopback_address(simulated: addresses.Addresses) -> None:
    assert _hosts(simulated) == {"127.1.0.1", "127.1.0.2"}
    assert simulated.of("a").port == simulated.of("b").port
    assert simulated.node_at("127.1.0.2") == "b"
    assert simulated.node_at("127.0.0.1") is None


@pytest.mark.parametrize(
    ("before", "want"),
    [
        pytest.param("127.1.0.9", "127.1.0.9", id="as-before"),
        pytest.param("127.1.0.1", "127.1.0.3", id="taken"),
        pytest.param("192.0.2.1", "127.1.0.3", id="of-another-cluster"),
        pytest.param("0.0.0.0", "127.1.0.3", id="all-addresses"),
        pytest.param("node.example.com", "127.1.0.3", id="no-address"),
        pytest.param("", "127.1.0.3", id="none"),
    ],
)
def test_a_node_more_has_its_address_from_before(simulated: addresses.Addresses, before: str, want: str) -> None:
    assert simulated.add("c", previous=before).host == want
    assert simulated.changed.is_set()
    assert simulated.node_at(want) == "c"


def test_an_address_is_free_again(simulated: addresses.Addresses) -> None:
    (removed_socket,) = [each for each in simulated.sockets if each.getsockname()[0] == "127.1.0.1"]
    simulated.remove("a")
    removed_socket.close()
    assert simulated.node_at("127.1.0.1") is None
    assert simulated.add("c").host == "127.1.0.1"


def test_another_port_is_taken_where_that_of_the_others_is_in_use(simulated: addresses.Addresses) -> None:
    with socket.create_server(("127.1.0.3", simulated.of("a").port)):
        assert simulated.add("c").port != simulated.of("a").port


def test_nodes_take_no_descriptors_from_clients() -> None:
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    lower = min(before, 1024)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lower, most))
        node_addresses = addresses.simulated_addresses(["a", "b", "c"])
        for each in node_addresses.sockets:
            each.close()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(lower + 3, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


@pytest.mark.parametrize(
    ("host", "want_bound", "want_host"),
    [
        pytest.param("", "127.0.0.1", "127.0.0.1", id="towards-the-api-server"),
        pytest.param("127.0.0.5", "127.0.0.5", "127.0.0.5", id="as-told"),
        pytest.param("0.0.0.0", "0.0.0.0", "127.0.0.1", id="all-if-told"),
    ],
)
def test_a_machine_listens_where_it_is_told(host: str, want_bound: str, want_host: str) -> None:
    node_addresses = addresses.machine_addresses("m", host, 0, towards="127.0.0.1")
    (opened,) = node_addresses.sockets
    with opened:
        assert opened.getsockname()[0] == want_bound
        assert node_addresses.of("m").host == want_host
        assert node_addresses.node_at("127.0.0.77") == "m"
