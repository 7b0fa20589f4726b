"""CPU usage rates of containers: between two samples, and since the start for the first sample."""

import datetime as dt

from drachma.node.endpoint.statistics import ContainerUsage, Rates
from drachma.node.runtimes.protocol import Usage

BEGIN = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


def _at(seconds: float) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=seconds)


def _usage(used: float, *, since: float = 0) -> ContainerUsage:
    return ContainerUsage("default", "p", "u1", "c", _at(since), Usage(used, 0))


def test_rates_are_from_look_to_look() -> None:
    rates, key = Rates(), ("u1", "c")
    assert rates.update([_usage(1.0)], now=_at(0.5)) == {key: 0.0}
    assert rates.update([_usage(5.0)], now=_at(10)) == {key: 0.5}
    assert rates.update([_usage(5.2)], now=_at(10.2)) == {key: 0.5}
    assert rates.update([_usage(25.0)], now=_at(20)) == {key: 2.0}


def test_a_container_that_begins_anew_is_looked_at_anew() -> None:
    rates = Rates()
    rates.update([_usage(100.0)], now=_at(10))
    assert rates.update([_usage(1.0, since=10)], now=_at(20)) == {("u1", "c"): 0.1}
    assert rates.update([], now=_at(30)) == {}
