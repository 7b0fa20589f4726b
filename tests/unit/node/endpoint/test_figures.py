"""How much of the processor containers use: from look to look, and since they began at the first."""

import datetime as dt

from drachma.node.endpoint.figures import Rates, _Figure
from drachma.node.runtimes.protocol import Usage

BEGIN = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


def _at(seconds: float) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=seconds)


def _figure(used: float, *, since: float = 0) -> _Figure:
    return _Figure("default", "p", "u1", "c", _at(since), Usage(used, 0))


def test_rates_are_from_look_to_look() -> None:
    rates, key = Rates(), ("u1", "c")
    assert rates.of([_figure(1.0)], now=_at(0.5)) == {key: 0.0}
    assert rates.of([_figure(5.0)], now=_at(10)) == {key: 0.5}
    assert rates.of([_figure(5.2)], now=_at(10.2)) == {key: 0.5}
    assert rates.of([_figure(25.0)], now=_at(20)) == {key: 2.0}


def test_a_container_that_begins_anew_is_looked_at_anew() -> None:
    rates = Rates()
    rates.of([_figure(100.0)], now=_at(10))
    assert rates.of([_figure(1.0, since=10)], now=_at(20)) == {("u1", "c"): 0.1}
    assert rates.of([], now=_at(30)) == {}
