"""Sharing of seats between levels, and of queues between flows."""

import collections

import pytest

from drachma.server.flowcontrol import dealer
from drachma.server.flowcontrol.fairqueue import FairQueue
from drachma.server.flowcontrol.seats import LevelSpec, Queuing, Seats

QUEUING = Queuing(64, 6, 50)


def _seats(total: int, *specs: LevelSpec) -> Seats[str]:
    made: Seats[str] = Seats(total)
    made.configure(specs)
    return made


def _take(seats: Seats[str], name: str) -> int:
    """Take as many seats as a level gets."""
    count = 0
    while seats.start(seats.levels[name]):
        count += 1
    return count


def test_nominal_seats_follow_shares() -> None:
    seats = _seats(600, LevelSpec(name="a", shares=30), LevelSpec(name="b", shares=215))
    assert [level.nominal for level in seats.levels.values()] == [74, 527]


def test_level_that_lends_nothing_keeps_its_seats() -> None:
    seats = _seats(100, LevelSpec(name="a", shares=1), LevelSpec(name="b", shares=1))
    assert _take(seats, "a") == 50
    assert _take(seats, "b") == 50


def test_level_borrows_what_another_lends() -> None:
    seats = _seats(100, LevelSpec(name="a", shares=1), LevelSpec(name="b", shares=1, lendable_percent=60))
    assert _take(seats, "a") == 80
    assert _take(seats, "b") == 20


def test_level_borrows_within_its_limit() -> None:
    lender = LevelSpec(name="b", shares=1, lendable_percent=100)
    seats = _seats(100, LevelSpec(name="a", shares=1, borrowing_percent=10), lender)
    assert _take(seats, "a") == 55


def test_exempt_level_has_no_limit() -> None:
    seats = _seats(1, LevelSpec(name="exempt", is_exempt=True), LevelSpec(name="a", shares=1))
    assert _take(seats, "a") == 1
    assert all(seats.start(seats.levels["exempt"]) for _ in range(1000))


def test_free_seat_goes_to_the_level_below_its_nominal_number() -> None:
    borrower = LevelSpec(name="a", shares=1, queuing=QUEUING)
    seats = _seats(10, borrower, LevelSpec(name="b", shares=1, lendable_percent=100, queuing=QUEUING))
    assert _take(seats, "a") == 10
    for name in ("a", "b"):
        queue = seats.levels[name].open_queue()
        assert queue is not None
        assert queue.enqueue(1, name) is not None
    seats.finish(seats.levels["a"])
    assert [ticket for ticket, _, _ in seats.dispatch()] == ["b"]


def test_removed_level_ends_with_its_requests() -> None:
    seats = _seats(10, LevelSpec(name="a", shares=1), LevelSpec(name="b", shares=1))
    gone = seats.levels["a"]
    assert seats.start(gone)
    seats.configure([LevelSpec(name="b", shares=1)])
    assert "a" in seats.levels
    seats.finish(gone)
    assert list(seats.levels) == ["b"]
    assert _take(seats, "b") == 10


def test_changed_queues_are_used_once_the_old_ones_are_empty() -> None:
    seats = _seats(1, LevelSpec(name="a", shares=1, queuing=QUEUING))
    level = seats.levels["a"]
    old = level.open_queue()
    assert old is not None
    queue = old.enqueue(1, "x")
    assert queue is not None
    seats.configure([LevelSpec(name="a", shares=1)])
    assert level.open_queue() is old
    assert old.remove(queue, "x")
    assert level.open_queue() is None


@pytest.mark.parametrize(("queues", "hand"), [(1, 1), (4, 4), (64, 6), (128, 6), (10_000_000, 2)])
def test_hands_have_different_queues(queues: int, hand: int) -> None:
    for number in range(200):
        dealt = dealer.deal(dealer.hash_flow("s", str(number)), queues=queues, hand=hand)
        assert len(set(dealt)) == hand
        assert all(0 <= card < queues for card in dealt)


def test_every_hand_is_as_likely_as_any_other() -> None:
    hands = collections.Counter(tuple(dealer.deal(number, queues=4, hand=2)) for number in range(12 * 5))
    assert len(hands) == 12
    assert set(hands.values()) == {5}


def _queue(**options: int) -> FairQueue[str]:
    return FairQueue(**{"queues": 64, "hand": 6, "length_limit": 50, **options})


def test_flow_is_limited_to_its_hand() -> None:
    queue = _queue()
    elephant = dealer.hash_flow("s", "elephant")
    waiting = sum(queue.enqueue(elephant, f"e{number}") is not None for number in range(1000))
    assert waiting == 6 * 50
    mouse = dealer.hash_flow("s", "mouse")
    assert queue.enqueue(mouse, "mouse") is not None


def test_flow_with_one_request_does_not_wait_behind_a_flow_with_hundreds() -> None:
    queue = _queue()
    for number in range(300):
        queue.enqueue(dealer.hash_flow("s", "elephant"), f"e{number}")
    # Requests of the elephant have run before, and each took a second.
    for _ in range(20):
        dequeued = queue.dequeue()
        assert dequeued is not None
        queue.finish(dequeued[1], 1.0)
    queue.enqueue(dealer.hash_flow("s", "mouse"), "mouse")
    turns = []
    while (dequeued := queue.dequeue()) is not None:
        turns.append(dequeued[0])
        queue.finish(dequeued[1], 1.0)
        if dequeued[0] == "mouse":
            break
    assert len(turns) <= 7, "one turn of each queue in the elephant's hand at most"


def test_flows_share_time_and_not_requests() -> None:
    queue = _queue(queues=2, hand=1)
    flows = {dealer.deal(number, queues=2, hand=1)[0]: number for number in range(2)}
    for number in range(40):
        queue.enqueue(flows[0], f"slow{number}")
        queue.enqueue(flows[1], f"quick{number}")
    used: collections.Counter[str] = collections.Counter()
    for _ in range(33):
        dequeued = queue.dequeue()
        assert dequeued is not None
        kind = dequeued[0].rstrip("0123456789")
        used[kind] += 10 if kind == "slow" else 1
        queue.finish(dequeued[1], 10.0 if kind == "slow" else 1.0)
    assert used == {"slow": 30, "quick": 30}


def test_empty_queues_take_no_memory() -> None:
    queue = _queue(queues=10_000_000, hand=2)
    for number in range(100):
        queue.enqueue(number * 7919, str(number))
    while (dequeued := queue.dequeue()) is not None:
        queue.finish(dequeued[1], 0.1)
    assert not queue._queues
