"""Decisions: one question to a class of nodes gives what asking node by node would give."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drachma import allocator
from drachma.api import node as nodes
from drachma.api import resourceclaim
from drachma.claims import taints
from drachma.scheduler.cycle.decision import Aborted, Placed, Unfit
from drachma.scheduler.plugins import noderesourcesfit
from drachma.scheduler.snapshot import podinfo
from drachma.testing import claim, device, node, resource_slice, subrequest
from drachma.testing import pod as a_pod
from tests.unit.scheduler.worlds import DRIVER, World

TAINT = nodes.Taint(key="dedicated", effect="NoSchedule")


@st.composite
def clusters(draw: st.DrawFn) -> World:
    world = World(draw(st.integers(0, 99)))
    world.put_class(f'device.driver == "{DRIVER}"')
    for number in range(draw(st.integers(1, 6))):
        taints = (TAINT,) if draw(st.integers(0, 4)) == 0 else ()
        labels = {"zone": draw(st.sampled_from("ab"))}
        cpu = draw(st.sampled_from(["1", "2"]))
        made = node(f"n{number}", labels=labels, taints=taints, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "9"})
        world.put_node(made)
        models = draw(st.sampled_from([(), ("a",), ("a", "a"), ("a", "b"), ("b", "a")]))
        if models:
            devices = [device(f"d{place}").attributes(model=model) for place, model in enumerate(models)]
            world.put_slice(resource_slice(f"s{number}", driver=DRIVER).on_node(f"n{number}").devices(*devices))
    if draw(st.booleans()):
        world.put_slice(
            resource_slice("everywhere", driver=DRIVER).on_all_nodes().devices(device("net").attributes(model="a"))
        )
    return world


_pods = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2]),  # devices
        st.sampled_from(["", "a", "b"]),  # of which model
        st.sampled_from(["0", "500m", "1"]),  # cpu
        st.sampled_from(["", "a", "b"]),  # zone
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=80)
@given(clusters(), _pods)
def test_classes_decide_as_single_nodes_would(world: World, wanted: list[tuple[int, str, str, str]]) -> None:
    for number, (count, model, cpu, zone) in enumerate(wanted):
        made = a_pod(f"p{number}").uid(f"p{number}").container("c", requests={"cpu": cpu})
        if zone:
            made = made.spec(node_selector={"zone": zone})
        claims = []
        if count:
            select = f'device.attributes["{DRIVER}"].model == "{model}"' if model else ()
            asked = claim(f"c{number}").uid(f"c{number}")
            asked = asked.request("r", device_class="gpu", count=count, mode="ExactCount", select=select)
            claims.append(world.claim(asked))
            made = made.claim("x", claim=f"c{number}")
        info = podinfo.PodInfo(made.build())
        want: dict[str, str] = dict(_one_by_one(world, info, claims))
        fitting = {name for name, reason in want.items() if not reason}

        decided = world.decide(info)
        if isinstance(decided, Placed):
            assert decided.node in fitting
            assert decided.feasible == len(fitting)
            world.snapshot.bind(decided.assignment)
        else:
            assert isinstance(decided, Unfit)
            assert not fitting
            counts: dict[str, int] = {}
            for reason in want.values():
                counts[reason] = counts.get(reason, 0) + 1
            listed = ", ".join(sorted(f"{number} {reason}" for reason, number in counts.items()))
            assert decided.diagnosis.message() == f"0/{len(want)} nodes are available: {listed}."


def _one_by_one(world: World, info: podinfo.PodInfo, claims: list[resourceclaim.ResourceClaim]) -> Any:
    """Return the first reason of every node against the pod, asked alone, or nothing."""
    source = world.snapshot.devices.allocator
    for state in world.snapshot.nodes:
        spec = info.pod.spec
        if taints.first_untolerated(state.node.spec.taints, spec.tolerations) is not None:
            yield state.name, "node(s) had untolerated taint(s)"
        elif not spec.node_selector.items() <= state.node.metadata.labels.items():
            yield state.name, "node(s) didn't match Pod's node affinity/selector"
        elif noderesourcesfit.FitQuestion(info.demand).ask(state.ledger).reasons:
            yield state.name, "Insufficient cpu"
        elif claims and isinstance(source.allocate(state.place, claims), allocator.DoesNotFit):
            yield state.name, "cannot allocate all claims"
        else:
            yield state.name, ""


def one_node(*devices: Any) -> World:
    world = World()
    world.put_class(f'device.driver == "{DRIVER}"')
    world.put_node(node("n1"))
    world.put_slice(resource_slice("s1", driver=DRIVER).on_node("n1").devices(*devices))
    return world


def wanting(world: World, made: Any) -> podinfo.PodInfo:
    world.claim(made.uid("c"))
    return podinfo.PodInfo(a_pod("p").uid("p").container("c", claims=("x",)).claim("x", claim="c").build())


def test_errors_name_the_claim_that_was_asked_for() -> None:
    world = one_node(device("d").attributes(model="a"))
    broken = f'device.attributes["{DRIVER}"].nope == 1'
    for name in ("first", "second"):
        world.claim(claim(name).uid(name).request("r", device_class="gpu", select=broken, mode="ExactCount", count=1))
        info = podinfo.PodInfo(a_pod(name).uid(name).claim("x", claim=name).build())
        decided = world.decide(info)
        assert isinstance(decided, Aborted)
        assert decided.message.startswith(
            f'running "DynamicResources" filter plugin: claim default/{name}: selector #0'
        )


def test_a_node_that_takes_too_long() -> None:
    world = one_node(*(device(f"d{number}").attributes(model="a") for number in range(8)))
    world.clock.step = 11.0
    decided = world.decide(wanting(world, claim("c").request("r", device_class="gpu", count=1, mode="ExactCount")))
    assert isinstance(decided, Aborted)
    assert decided.message == (
        'running "DynamicResources" filter plugin: node n1: timed out trying to allocate devices'
    )


def test_other_nodes_go_on_if_one_takes_too_long() -> None:
    """The search on n1 needs more looks at the clock than the limit allows; n2 has one device, which is found at once.

    The next pass asks n1 again.
    """
    world = one_node(*(device(f"d{number}").attributes(model="a") for number in range(8)))
    world.put_node(node("n2"))
    world.put_slice(resource_slice("s2", driver=DRIVER, pool="n2").on_node("n2").devices("only"))
    asked: list[str] = []
    allocate = allocator.Allocator.allocate

    def slow_on_n1(own: Any, place: Any, *args: Any, **options: Any) -> Any:
        asked.append(place.name)
        return allocator.GaveUp("too slow") if place.name == "n1" else allocate(own, place, *args, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(allocator.Allocator, "allocate", slow_on_n1)
        info = wanting(world, claim("c").request("r", device_class="gpu", count=1, mode="ExactCount"))
        decided = world.decide(info)
        assert isinstance(decided, Placed)
        assert decided.node == "n2"
        asked.clear()
        world.decide(info)
    assert "n1" in asked
    assert isinstance(world.decide(info), Placed)


@pytest.mark.parametrize(
    ("made", "want"),
    [
        pytest.param(
            claim("c").request("r", device_class="nope", mode="ExactCount", count=1),
            "0/1 nodes are available: request r: device class nope does not exist.",
            id="class-of-a-request",
        ),
        pytest.param(
            claim("c").first_available("r", subrequest("a", "gpu"), subrequest("b", "nope")),
            "0/1 nodes are available: request r/b: device class nope does not exist.",
            id="class-of-a-subrequest",
        ),
    ],
)
def test_before_any_node(made: Any, want: str) -> None:
    world = one_node("d")
    decided = world.decide(wanting(world, made))
    assert isinstance(decided, Unfit)
    assert decided.diagnosis.message() == want
    assert decided.diagnosis.plugins == {"DynamicResources"}


def test_a_claim_in_flight_is_waited_for() -> None:
    world = one_node("d")
    info = wanting(world, claim("c").request("r", device_class="gpu", mode="ExactCount", count=1))
    placed = world.decide(info)
    assert isinstance(placed, Placed)
    world.snapshot.bind(placed.assignment)
    decided = world.decide(info)
    assert isinstance(decided, Unfit)
    assert decided.diagnosis.message() == (
        "0/1 nodes are available: resource claim default/c is in the process of being allocated."
    )


def test_invalid_pools_rule_out_only_their_node() -> None:
    world = one_node("d")
    world.put_node(node("n2"))
    world.put_slice(resource_slice("bad", driver=DRIVER).on_node("n2").devices("twice", "twice"))
    info = wanting(world, claim("c").request("r", device_class="gpu", mode="ExactCount", count=1))
    decided = world.decide(info)
    assert isinstance(decided, Placed)
    assert (decided.node, decided.feasible) == ("n1", 1)
    world.snapshot.bind(decided.assignment)
    world.claim(claim("d").uid("d").request("r", device_class="gpu", mode="ExactCount", count=1))
    other = world.decide(podinfo.PodInfo(a_pod("q").uid("q").claim("x", claim="d").build()))
    assert isinstance(other, Unfit)
    assert other.diagnosis.message() == (
        "0/2 nodes are available: 1 cannot allocate all claims, 1 invalid resource pools were encountered."
    )


def test_nothing_is_changed_by_deciding() -> None:
    world = one_node("d")
    info = wanting(world, claim("c").request("r", device_class="gpu", mode="ExactCount", count=1))
    first, second = world.decide(info), world.decide(info)
    assert isinstance(first, Placed)
    assert isinstance(second, Placed)
    assert first.assignment == second.assignment
