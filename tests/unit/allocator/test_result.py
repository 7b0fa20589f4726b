"""What allocation results say besides devices: configuration of classes and claims, and to whom it applies."""

from __future__ import annotations

from drachma import allocator
from drachma.allocator import selectors
from drachma.api import resourceclaim
from drachma.offline import allocatorcase
from drachma.testing import claim, device_class, resource_slice, subrequest
from drachma.testing.claims import ClaimBuilder


def _configs(wanted: ClaimBuilder) -> list[tuple[str, object, tuple[str, ...]]]:
    """Source, parameters and requests of the configurations that a claim gets."""
    features = allocator.Features.parse_names(["all"])
    classes = [
        device_class("a").config("d", "of class a").build(),
        device_class("b").config("d", "of class b").build(),
        device_class("none", "false").build(),
    ]
    built = allocator.Allocator(
        allocator.Catalog([resource_slice("s", driver="d").on_node("n").devices("x", "y", "z").build()]),
        classes=allocator.Classes(classes),
        allocated=allocator.AllocatedState(consumable_capacity=True),
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: "share",
    )
    outcome = built.allocate(allocator.Node("n"), [wanted.build()])
    assert isinstance(outcome, allocator.Allocated)
    return [_entry(entry) for entry in outcome.results[0].devices.config]


def _entry(entry: resourceclaim.DeviceAllocationConfiguration) -> tuple[str, object, tuple[str, ...]]:
    assert entry.opaque is not None
    return str(entry.source), entry.opaque.parameters, tuple(entry.requests)


def _request(built: ClaimBuilder, name: str, device_class_name: str) -> ClaimBuilder:
    return built.request(name, device_class=device_class_name, count=1, mode="ExactCount")


def test_what_applies_to_all_requests_names_none() -> None:
    wanted = _request(_request(claim("c"), "r0", "a"), "r1", "a").config("d", "both", "r0", "r1")
    assert _configs(wanted) == [("FromClass", "of class a", ()), ("FromClaim", "both", ())]


def test_classes_come_first_each_once_and_then_the_claim() -> None:
    wanted = claim("c").config("d", "for one", "r1").config("d", "for all")
    for name, device_class_name in (("r0", "a"), ("r1", "b"), ("r2", "a")):
        wanted = _request(wanted, name, device_class_name)
    assert _configs(wanted) == [
        ("FromClass", "of class a", ("r0", "r2")),
        ("FromClass", "of class b", ("r1",)),
        ("FromClaim", "for one", ("r1",)),
        ("FromClaim", "for all", ()),
    ]


def test_only_the_subrequest_that_was_chosen_counts() -> None:
    wanted = claim("c").first_available(
        "r", subrequest("s0", "none", count=1, mode="ExactCount"), subrequest("s1", "b", count=1, mode="ExactCount")
    )
    wanted = _request(wanted, "other", "a")
    wanted = wanted.config("d", "first", "r/s0").config("d", "second", "r/s1").config("d", "parent", "r")
    assert _configs(wanted) == [
        ("FromClass", "of class b", ("r/s1",)),
        ("FromClass", "of class a", ("other",)),
        ("FromClaim", "second", ("r/s1",)),
        ("FromClaim", "parent", ("r",)),
    ]


def test_empty_lists_are_left_out() -> None:
    """As Go's encoder leaves them out, so that the stored claim equals the result."""
    exactly = {"deviceClassName": "a", "allocationMode": "ExactCount", "count": 1, "tolerations": []}
    device = {"name": "x", "bindingConditions": [], "bindingFailureConditions": []}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    case = allocatorcase.AllocatorCase(
        {
            "name": "empty-lists",
            "features": ["all"],
            "node": {"metadata": {"name": "n"}},
            "classes": [{"metadata": {"name": "a"}, "spec": {}}],
            "claims": [
                {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
            ],
            "slices": [
                {
                    "metadata": {"name": "s"},
                    "spec": {
                        "driver": "d",
                        "pool": pool,
                        "allNodes": True,
                        "devices": [device],
                        "skipNodeOperations": [],
                    },
                }
            ],
        }
    )
    want = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}
    assert case.answer() == {"results": [want]}
