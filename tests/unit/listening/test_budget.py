"""Which connections are admitted, and which one makes room."""

import resource

import pytest

from drachma.listening import budget as budgets
from drachma.listening import limits as limiting
from drachma.listening.limits import Limits

HERE, THERE, ELSEWHERE = "192.0.2.1", "192.0.2.2", "192.0.2.3"
FREE = 10
"""A file descriptor outside the reserve."""


class Connection:
    """A connection that knows whether it was ended."""

    def __init__(self, budget: budgets.Budget, address: str) -> None:
        self.slot = budget.admit(address, descriptor=FREE)
        self.is_ended = False
        if self.slot is not None:
            self.slot.give_up = self._end

    def _end(self) -> None:
        self.is_ended = True

    @property
    def open_slot(self) -> budgets.Slot:
        assert self.slot is not None
        return self.slot


def _budget(**limits: int) -> budgets.Budget:
    return budgets.Budget(Limits(**{"connections": 8, "peer_percent": 50, "loopback_percent": 75, **limits}))


def test_longest_waiting_connection_makes_room() -> None:
    budget = _budget(peer_percent=100)
    connections = [Connection(budget, HERE) for _ in range(8)]
    connections[0].open_slot.work()
    assert Connection(budget, HERE).slot is not None
    assert [each.is_ended for each in connections[:3]] == [False, True, False]
    assert len(budget) == 8


def test_connection_that_waits_again_goes_to_the_end() -> None:
    budget = _budget(peer_percent=100)
    connections = [Connection(budget, HERE) for _ in range(8)]
    connections[0].open_slot.work()
    connections[0].open_slot.wait()
    Connection(budget, HERE)
    assert [each.is_ended for each in connections[:2]] == [False, True]


def test_client_at_its_share_displaces_only_itself() -> None:
    budget = _budget()
    other = Connection(budget, THERE)
    own = [Connection(budget, HERE) for _ in range(4)]
    for _ in range(3):
        assert Connection(budget, HERE).slot is not None
    assert [each.is_ended for each in own] == [True, True, True, False]
    assert not other.is_ended


def test_client_at_its_share_is_refused_while_all_its_connections_work() -> None:
    budget = _budget()
    for _ in range(4):
        Connection(budget, HERE).open_slot.work()
    assert Connection(budget, HERE).slot is None
    assert Connection(budget, THERE).slot is not None
    assert budget.refused == 1


def test_address_with_most_waiting_connections_makes_room_for_others() -> None:
    budget = _budget()
    quiet = Connection(budget, THERE)
    for each in (Connection(budget, THERE), *(Connection(budget, ELSEWHERE) for _ in range(2))):
        each.open_slot.work()
    flood = [Connection(budget, HERE) for _ in range(4)]
    assert Connection(budget, ELSEWHERE).slot is not None
    assert flood[0].is_ended
    assert not quiet.is_ended


def test_descriptors_in_the_reserve_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 4096))
    budget = budgets.Budget(Limits())
    assert budget.most == 1024 - Limits().reserved_descriptors
    assert budget.admit(HERE, descriptor=budget.most - 1) is not None
    slot = budget.admit(THERE, descriptor=budget.most)
    assert slot is not None, "the first connection waits, and makes room"
    slot.work()
    assert budget.admit(ELSEWHERE, descriptor=budget.most) is None


@pytest.mark.parametrize(
    ("soft", "hard", "want_soft"),
    [
        pytest.param(1024, 1 << 20, 10_128, id="as-far-as-connections-need"),
        pytest.param(1024, 4096, 4096, id="as-far-as-is-allowed"),
        pytest.param(20_000, 20_000, None, id="enough"),
        pytest.param(resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, id="unlimited"),
    ],
)
def test_descriptors_are_raised(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, want_soft: int | None) -> None:
    changes = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, pair: changes.append(pair))
    limiting.raise_descriptor_limit(Limits())
    assert changes == ([] if want_soft is None else [(want_soft, hard)])


def test_released_slot_is_free_once() -> None:
    budget = _budget()
    connection = Connection(budget, HERE)
    connection.open_slot.release()
    connection.open_slot.release()
    connection.open_slot.wait()
    assert len(budget) == 0
    assert not budget.make_room()


@pytest.mark.parametrize(
    ("address", "want_key"),
    [
        pytest.param("192.0.2.1", "192.0.2.1", id="v4"),
        pytest.param("::ffff:192.0.2.1", "192.0.2.1", id="v4-in-v6"),
        pytest.param("127.0.0.9", "loopback", id="loopback-network"),
        pytest.param("::1", "loopback", id="loopback-v6"),
        pytest.param("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", id="v6-by-network"),
        pytest.param("fe80::1%eth0", "fe80::/64", id="v6-with-zone"),
        pytest.param("", "", id="unix-socket"),
    ],
)
def test_connections_are_counted_by_address(address: str, want_key: str) -> None:
    assert budgets.peer_key(address) == want_key
