"""What conflicts, and what would help: minimal sets, contention, and the smallest change, case by case."""

from __future__ import annotations

import pytest

from drachma import allocator
from drachma.allocator import budget, explanation
from drachma.allocator.explanation import report
from drachma.testing import ClaimBuilder, claim, device, device_class, resource_slice, subrequest
from tests.unit.allocator import explained
from tests.unit.allocator.explained import DRIVER, NODE, gpus, source

NUMA = f"{DRIVER}/numa"
FAST = f'device.attributes["{DRIVER}"].speed >= 200'
OLD = f'device.attributes["{DRIVER}"].speed < 500'


def part(text: str, explained_part: report.ConflictPart) -> bool:
    kind, _, rest = text.partition(" ")
    found = explained_part.request if explained_part.number is None else f"{explained_part.number}"
    if explained_part.kind == "selector":
        found = f"{explained_part.request}#{explained_part.number}"
    return (kind, rest) == (explained_part.kind, found)


CONFLICTS: list[object] = [
    pytest.param(
        source([gpus("g0")]),
        claim("c").request("many", device_class="gpu", count=2).request("one", device_class="gpu"),
        ["request many"],
        id="one-request-alone",
    ),
    pytest.param(
        source([gpus("g0", "g1")]),
        claim("c").request("a", device_class="gpu").request("b", device_class="gpu").request("c", device_class="gpu"),
        ["request a", "request b", "request c"],
        id="all-requests-together",
    ),
    pytest.param(
        source([gpus(device("g0").attribute("speed", 100), device("g1").attribute("speed", 400))]),
        claim("c").request("r", device_class="gpu", count=2, select=(OLD, FAST)),
        ["request r", "selector r#1"],
        id="only-the-selector-that-matters",
    ),
    pytest.param(
        source([gpus(device("g0").attribute("numa", 0), device("g1").attribute("numa", 1))]),
        claim("c")
        .request("a", device_class="gpu")
        .request("b", device_class="gpu")
        .distinct_attribute(NUMA)
        .match_attribute(NUMA),
        ["request a", "request b", "constraint 1"],
        id="only-the-constraint-that-matters",
    ),
    pytest.param(
        source([gpus("g0")]),
        claim("c")
        .request("fine", device_class="gpu", admin_access=True)
        .first_available("r", subrequest("four", "gpu", count=4), subrequest("two", "gpu", count=2)),
        ["request r"],
        id="request-with-alternatives",
    ),
]


@pytest.mark.parametrize(("over", "wanted", "want"), CONFLICTS)
def test_minimal_conflict(over: allocator.Allocator, wanted: ClaimBuilder, want: list[str]) -> None:
    found = explained.explain(over, wanted)
    assert found.outcome == "DoesNotFit"
    assert found.conflict is not None
    assert found.conflict.is_minimal
    assert [part(text, entry) for text, entry in zip(want, found.conflict.parts, strict=True)] == [True] * len(want)


def test_conflict_across_claims() -> None:
    over = source([gpus("g0")])
    found = explained.explain(
        over, claim("a").request("r", device_class="gpu"), claim("b").request("r", device_class="gpu")
    )
    assert found.conflict is not None
    assert [(entry.claim, entry.request) for entry in found.conflict.parts] == [("default/a", "r"), ("default/b", "r")]
    assert found.conflict.contentions == (report.Contention(kind="devices", needed="2", available="1"),)


PARTS = [
    resource_slice("sets", driver=DRIVER, pool="p", slices=2).on_node(NODE).counters("card", memory="80Gi"),
    resource_slice("parts", driver=DRIVER, pool="p", slices=2)
    .on_node(NODE)
    .devices(*(device(f"part-{number}").consumes("card", memory="30Gi") for number in range(3))),
]


def test_contention_for_a_counter() -> None:
    found = explained.explain(source(PARTS), claim("c").request("r", device_class="gpu", count=3))
    assert found.conflict is not None
    assert found.conflict.contentions == (
        report.Contention(kind="counter", name=f"memory of card in pool {DRIVER}/p", needed="90Gi", available="80Gi"),
    )


def test_contention_for_shared_capacity() -> None:
    over = source([gpus(device("g0").capacity("memory", "10Gi").shared())])
    wanted = claim("c")
    for name in ("a", "b"):
        wanted = wanted.request(name, device_class="gpu", capacity={"memory": "6Gi"})
    found = explained.explain(over, wanted)
    assert found.conflict is not None
    assert found.conflict.contentions == (
        report.Contention(kind="capacity", name="memory", needed="12Gi", available="10Gi"),
    )


HELD = claim("x").allocated(("r", DRIVER, "gpus", "g0"), ("r", DRIVER, "gpus", "g1"))
PICKY = device_class("picky", f'device.driver == "{DRIVER}"', f'device.attributes["{DRIVER}"].?ok.orValue(false)')

CHANGES: list[object] = [
    pytest.param(
        source([gpus("g0", "g1", "g2")]),
        claim("c").request("r", device_class="gpu", count=5),
        report.Change(
            kind=report.ChangeKind.LOWER_COUNT, size=2, subject="default/c", request="r", before="5", after="3"
        ),
        id="lower-a-count",
    ),
    pytest.param(
        source([gpus("g0")]),
        claim("c").first_available("r", subrequest("four", "gpu", count=4), subrequest("two", "gpu", count=2)),
        report.Change(
            kind=report.ChangeKind.LOWER_COUNT, size=1, subject="default/c", request="r/two", before="2", after="1"
        ),
        id="lower-the-count-of-a-subrequest",
    ),
    pytest.param(
        source([gpus(device("g0").attribute("speed", 100))]),
        claim("c").request("r", device_class="gpu", select=(OLD, FAST)),
        report.Change(
            kind=report.ChangeKind.DROP_SELECTOR, size=1, subject="default/c", request="r", number=1, before=FAST
        ),
        id="drop-a-selector",
    ),
    pytest.param(
        source([gpus(*(device(f"g{number}").attribute("numa", number) for number in range(3)))]),
        claim("c").request("r", device_class="gpu", count=3).match_attribute(NUMA),
        report.Change(kind=report.ChangeKind.DROP_CONSTRAINT, size=1, subject="default/c", number=0, before=NUMA),
        id="drop-a-constraint",
    ),
    pytest.param(
        source([gpus(device("g0").taint("broken", value="yes"))]),
        claim("c").request("r", device_class="gpu"),
        report.Change(
            kind=report.ChangeKind.TOLERATE, size=1, subject="default/c", request="r", after="broken=yes:NoSchedule"
        ),
        id="tolerate-a-taint",
    ),
    pytest.param(
        source([gpus("g0", "g1")], held=[HELD]),
        claim("c").request("r", device_class="gpu"),
        report.Change(kind=report.ChangeKind.FREE_CLAIM, size=2, subject="default/x"),
        id="free-a-claim",
    ),
    pytest.param(
        source(
            [gpus(device("g0").capacity("memory", "16Gi").shared())],
            held=[explained.consuming(claim("x").allocated(("r", DRIVER, "gpus", "g0")), memory="10Gi")],
        ),
        claim("c").request("r", device_class="gpu", capacity={"memory": "8Gi"}),
        report.Change(
            kind=report.ChangeKind.LOWER_CAPACITY,
            size=1,
            subject="default/c",
            request="r",
            before="8Gi memory",
            after="6Gi memory",
        ),
        id="ask-for-less-capacity",
    ),
    pytest.param(
        source([gpus("g0")]),
        claim("c").request("a", device_class="gpu").request("b", device_class="gpu"),
        report.Change(kind=report.ChangeKind.DROP_REQUEST, size=1, subject="default/c", request="a"),
        id="leave-out-a-request",
    ),
    pytest.param(
        source([gpus("g0")], classes=[PICKY.build()]),
        claim("c").request("r", device_class="picky"),
        report.Change(
            kind=report.ChangeKind.DROP_CLASS_SELECTOR,
            size=1,
            subject="picky",
            number=1,
            before=f'device.attributes["{DRIVER}"].?ok.orValue(false)',
        ),
        id="drop-a-selector-of-the-class",
    ),
]


@pytest.mark.parametrize(("over", "wanted", "want"), CHANGES)
def test_smallest_change(over: allocator.Allocator, wanted: ClaimBuilder, want: report.Change) -> None:
    assert explained.explain(over, wanted).changes[0] == want


def test_a_class_is_not_told_to_take_devices_of_other_drivers() -> None:
    over = source([resource_slice("nics", driver="nic.example.com").on_node(NODE).devices("n0")])
    assert explained.explain(over, claim("c").request("r", device_class="gpu")).changes == ()


def test_the_smaller_change_comes_first() -> None:
    over = source(
        [gpus("g0", "g1", device("g2").taint("hot"))], held=[claim("x").allocated(("r", DRIVER, "gpus", "g0"))]
    )
    found = explained.explain(over, claim("c").request("r", device_class="gpu", count=2))
    assert [(change.kind, change.size) for change in found.changes] == [
        (report.ChangeKind.TOLERATE, 1),
        (report.ChangeKind.LOWER_COUNT, 1),
        (report.ChangeKind.FREE_CLAIM, 1),
    ]


def test_two_taints_are_no_single_change() -> None:
    over = source([gpus(device("g0").taint("a").taint("b"))])
    assert explained.explain(over, claim("c").request("r", device_class="gpu")).changes == ()


def test_what_fits_has_neither_conflict_nor_changes() -> None:
    found = explained.explain(source([gpus("g0")]), claim("c").request("r", device_class="gpu"))
    assert (found.outcome, found.conflict, found.changes) == ("Fits", None, ())


def test_errors_are_told_apart() -> None:
    found = explained.explain(source([gpus("g0")]), claim("c").request("r", device_class="missing"))
    assert found.outcome == "Error"
    assert found.message == (
        "claim default/c, request r: could not retrieve device class missing: "
        'deviceclass.resource.k8s.io "missing" not found'
    )


@pytest.mark.parametrize(
    ("steps", "want"),
    [
        pytest.param(1, ("GaveUp", False, False), id="too-few-to-know-anything"),
        pytest.param(20, ("DoesNotFit", False, False), id="too-few-for-trials"),
        pytest.param(1000, ("DoesNotFit", True, True), id="enough"),
    ],
)
def test_budget(steps: int, want: tuple[str, bool, bool]) -> None:
    over = source([gpus(*(f"g{number}" for number in range(5)))])
    wanted = claim("c")
    for number in range(6):
        wanted = wanted.request(f"r{number}", device_class="gpu")
    explainer = explanation.Explainer(over, limits=budget.Limits(steps=steps))
    found = explainer.explain(allocator.Node(NODE), [explained.defaulted(wanted)])
    is_minimal = found.conflict is not None and found.conflict.is_minimal
    assert (found.outcome, found.is_complete, is_minimal) == want
    assert bool(found.changes) == is_minimal


def test_explaining_changes_nothing() -> None:
    over = source([gpus("g0", "g1")], held=[HELD])
    before = (over.catalog.revision, over.allocated.revision)
    wanted = explained.defaulted(claim("c").request("r", device_class="gpu"))
    explanation.Explainer(over).explain(allocator.Node(NODE), [wanted])
    assert (over.catalog.revision, over.allocated.revision) == before
    assert over.allocated.owners(allocator.DeviceID(DRIVER, "gpus", "g0")) == ("default/x",)
    assert over.allocate(allocator.Node(NODE), [wanted]) == allocator.DoesNotFit(steps=0)
