"""Ledgers: booking a pod out restores the ledger exactly."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.accounting import ledger
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
