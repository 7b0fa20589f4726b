"""Host ports of pods, and their collisions."""

import pytest

from drachma.accounting import ports
from drachma.api import pod
from drachma.testing import pod as a_pod


@pytest.mark.parametrize(
    ("first", "second", "collide"),
    [
        pytest.param(("", "TCP", 80), ("", "TCP", 80), True, id="same"),
        pytest.param(("", "TCP", 80), ("", "UDP", 80), False, id="other-protocol"),
        pytest.param(("", "TCP", 80), ("", "TCP", 81), False, id="other-port"),
        pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False, id="other-address"),
        pytest.param(("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True, id="all-addresses"),
    ],
)
def test_collisions(first: tuple[str, str, int], second: tuple[str, str, int], collide: bool) -> None:
    def opened(address: str, protocol: str, number: int) -> tuple[ports.HostPort, ...]:
        port = pod.ContainerPort(host_ip=address, protocol=protocol, host_port=number, container_port=number)
        return ports.host_ports(a_pod("p").spec(containers=(pod.Container(name="c", ports=(port,)),)).build())

    assert ports.are_free(opened(*first), opened(*second)) is not collide


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    port = pod.ContainerPort(host_port=80, container_port=80)
    sidecar = pod.Container(name="s", ports=(port,), restart_policy="Always")
    init = pod.Container(name="i", ports=(port,))
    assert len(ports.host_ports(a_pod("p").spec(init_containers=(sidecar,)).build())) == 1
    assert ports.host_ports(a_pod("p").spec(init_containers=(init,)).build()) == ()


def test_ports_of_containers_only_are_not_the_nodes() -> None:
    inside = pod.ContainerPort(container_port=80)
    assert ports.host_ports(a_pod("p").spec(containers=(pod.Container(name="c", ports=(inside,)),)).build()) == ()


def test_what_is_not_said_is_tcp_on_all_addresses() -> None:
    port = pod.ContainerPort(host_port=8080, container_port=80)
    opened = ports.host_ports(a_pod("p").spec(containers=(pod.Container(name="c", ports=(port,)),)).build())
    assert opened == (ports.HostPort("0.0.0.0", "TCP", 8080),)
