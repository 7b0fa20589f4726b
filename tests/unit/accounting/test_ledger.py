"""Ledgers and host ports: what is booked in comes out again, to the last bit."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.accounting import ledger, ports
from drachma.api import pod
from drachma.testing import node
from drachma.testing import pod as a_pod


def booking(name: str, cpu: int = 1, port: int = 0) -> ledger.Booking:
    made = a_pod(name).uid(name).container("c", requests={"cpu": str(cpu)}).build()
    if port:
        opened = pod.ContainerPort(container_port=port, host_port=port)
        container = pod.Container(name="c", ports=(opened,))
        made = a_pod(name).uid(name).spec(containers=(container,)).build()
    return ledger.Booking(made, ledger.demand(made))


def measured() -> ledger.Ledger:
    account = ledger.Ledger()
    account.measure(node("n").build())
    return account


def state(account: ledger.Ledger) -> Any:
    return (
        account.requested,
        account.scored_cpu,
        account.scored_memory,
        sorted(account.used_ports),
        set(account.bookings),
    )


def test_booking_twice_counts_once() -> None:
    account = measured()
    account.book(booking("p", cpu=1))
    account.book(booking("p", cpu=3))
    assert account.requested == {"cpu": 3000}
    assert account.left("cpu") == 1000


def test_a_copy_is_apart() -> None:
    account = measured()
    account.book(booking("p"))
    other = account.copy()
    other.book(booking("q", port=80))
    other.cancel("p")
    assert account.requested == {"cpu": 1000}
    assert not account.used_ports


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 3), st.sampled_from([0, 80, 81])), max_size=20))
def test_what_is_cancelled_was_never_there(bookings: list[tuple[str, int, int]]) -> None:
    account = measured()
    for name, cpu, port in bookings:
        account.book(booking(name, cpu=cpu, port=port))
    for name, _, _ in bookings:
        account.cancel(name)
    assert state(account) == state(measured())


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
def test_ports(first: tuple[str, str, int], second: tuple[str, str, int], collide: bool) -> None:
    def wanted(address: str, protocol: str, number: int) -> tuple[ports.HostPort, ...]:
        port = pod.ContainerPort(host_ip=address, protocol=protocol, host_port=number, container_port=number)
        return ports.wanted(a_pod("p").spec(containers=(pod.Container(name="c", ports=(port,)),)).build())

    assert ports.are_free(wanted(*first), wanted(*second)) is not collide


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    port = pod.ContainerPort(host_port=80, container_port=80)
    sidecar = pod.Container(name="s", ports=(port,), restart_policy="Always")
    init = pod.Container(name="i", ports=(port,))
    assert len(ports.wanted(a_pod("p").spec(init_containers=(sidecar,)).build())) == 1
    assert ports.wanted(a_pod("p").spec(init_containers=(init,)).build()) == ()
