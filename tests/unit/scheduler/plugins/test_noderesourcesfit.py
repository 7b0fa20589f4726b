"""Fit, and scores by the resources left."""

from typing import Any

import pytest

from drachma.accounting import ledger
from drachma.scheduler.plugins import noderesourcesfit
from drachma.testing import node
from drachma.testing import pod as a_pod


def account(used: Any = None, **allocatable: str) -> ledger.Ledger:
    made = ledger.Ledger()
    made.measure(node("n", allocatable={"pods": "2", **allocatable}).build())
    if used is not None:
        there = a_pod("there").uid("there").container("c", requests=used).build()
        made.book(ledger.Booking(there, ledger.demand(there)))
    return made


def ask(requests: dict[str, str], on: ledger.Ledger, *delegated: str) -> noderesourcesfit.Fit:
    waiting = a_pod("p").container("c", requests=requests).build()
    return noderesourcesfit.FitQuestion(ledger.demand(waiting), frozenset(delegated)).ask(on)


@pytest.mark.parametrize(
    ("requests", "on", "want_reasons", "want_resolvable"),
    [
        pytest.param({"cpu": "4"}, account(cpu="4", memory="4Gi"), (), False, id="exactly-fits"),
        pytest.param({"cpu": "4001m"}, account(cpu="4"), ("Insufficient cpu",), False, id="larger-than-the-node"),
        pytest.param({"cpu": "2"}, account({"cpu": "3"}, cpu="4"), ("Insufficient cpu",), True, id="node-is-full"),
        pytest.param(
            {"cpu": "2", "memory": "9Gi"},
            account({"cpu": "3"}, cpu="4", memory="8Gi"),
            ("Insufficient cpu", "Insufficient memory"),
            False,
            id="one-reason-that-nothing-helps-against",
        ),
        pytest.param(
            {"example.com/gpu": "1"}, account(cpu="4"), ("Insufficient example.com/gpu",), False, id="unknown"
        ),
        pytest.param({}, account({"cpu": "1"}, cpu="1", pods="1"), ("Too many pods",), True, id="too-many-pods"),
    ],
)
def test_fit(requests: dict[str, str], on: ledger.Ledger, want_reasons: Any, want_resolvable: bool) -> None:
    fit = ask(requests, on)
    assert (fit.reasons, fit.is_resolvable) == (want_reasons, want_resolvable)


def test_devices_stand_for_what_a_node_does_not_have() -> None:
    assert not ask({"example.com/gpu": "1"}, account(cpu="4"), "example.com/gpu").reasons
    plugged = account(cpu="4", **{"example.com/gpu": "0"})
    assert not ask({"example.com/gpu": "1"}, plugged, "example.com/gpu").reasons
    short = account(cpu="4", **{"example.com/gpu": "1"})
    assert ask({"example.com/gpu": "2"}, short, "example.com/gpu").reasons == ("Insufficient example.com/gpu",)


@pytest.mark.parametrize(
    ("requests", "on", "want"),
    [
        # (cpu (10000 - 3000) * 100 / 10000 + memory (20000 - 5000) * 100 / 20000) / 2
        pytest.param({"cpu": "3", "memory": "5000"}, account(cpu="10", memory="20000"), 72, id="with-requests"),
        pytest.param({}, account(cpu="1", memory="2000Mi"), 90, id="defaults-of-100m-and-200mb"),
        pytest.param({"cpu": "1"}, account({"cpu": "9"}, cpu="10"), 0, id="only-cpu-known"),
    ],
)
def test_the_least_allocated_is_best(requests: dict[str, str], on: ledger.Ledger, want: int) -> None:
    assert ask(requests, on).score == want
