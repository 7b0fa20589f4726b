"""Explanations as people read them: the same text for the same explanation, and no line that says nothing."""

from __future__ import annotations

import json

from drachma import allocator
from drachma.allocator import explanation
from drachma.allocator.explanation import survey
from drachma.testing import claim, device, resource_slice, subrequest
from tests.unit.allocator import explained
from tests.unit.allocator.explained import DRIVER, NODE, gpus, source

FAST = f'device.attributes["{DRIVER}"].speed >= 200'
NUMA = f"{DRIVER}/numa"


def test_everything_at_once() -> None:
    over = source(
        [
            gpus(
                device("g0").attribute("speed", 400).attribute("numa", 0),
                device("g1").attribute("speed", 400).attribute("numa", 1),
                device("g2").attribute("speed", 100).attribute("numa", 0),
                device("g3").attribute("speed", 50).attribute("numa", 0),
                device("g4").attribute("speed", 400).attribute("numa", 0).taint("hot"),
                device("g5").attribute("speed", 400).attribute("numa", 0),
            ),
            resource_slice("far", driver=DRIVER).on_node("node-2").devices("g0", "g9"),
        ],
        held=[claim("x").allocated(("r", DRIVER, "gpus", "g5"))],
    )
    wanted = claim("c").request("r", device_class="gpu", count=2, select=FAST).match_attribute(NUMA)
    assert explanation.render(explained.explain(over, wanted)) == (
        "node node-1: claim default/c does not fit\n"
        "  request r: wants 2 of class gpu, which does not fit even alone\n"
        "    2 of 8: constraint #0 cannot be met with their gpu.example.com/numa\n"
        "      0: g0\n"
        "      1: g1\n"
        "    1 of 8: already allocated\n"
        "      to claim default/x: g5\n"
        "    1 of 8: tainted, and not tolerated\n"
        "      hot:NoSchedule: g4\n"
        '    2 of 8: request selector #0 does not match, device.attributes["gpu.example.com"].speed >= 200\n'
        "      gpu.example.com/speed is 100: g2\n"
        "      gpu.example.com/speed is 50: g3\n"
        "    2 of 8: not reachable from the node\n"
        "      their slice is for another node: far/g0, far/g9\n"
        "  constraint #0, matchAttribute gpu.example.com/numa: no value has enough usable devices\n"
        "    0: r 1 of 2\n"
        "    1: r 1 of 2\n"
        "  these requirements conflict; relaxing any one of them makes the claim fit:\n"
        "    request r (2 of class gpu)\n"
        '    selector #0 of request r (device.attributes["gpu.example.com"].speed >= 200)\n'
        "    constraint #0 (matchAttribute gpu.example.com/numa)\n"
        "  smallest change that would make it fit: tolerate hot:NoSchedule in request r\n"
        "    or: lower the count of request r from 2 to 1\n"
        '    or: drop selector #0 of request r (device.attributes["gpu.example.com"].speed >= 200)\n'
        "    or: drop constraint #0 (gpu.example.com/numa)\n"
        "    or: free claim default/x (1 device)\n"
    )


def test_subrequests_and_several_claims() -> None:
    over = source([gpus("g0", "g1")])
    found = explained.explain(
        over,
        claim("a").first_available("r", subrequest("three", "gpu", count=3), subrequest("two", "gpu", count=2)),
        claim("b").request("r", device_class="gpu"),
    )
    assert explanation.render(found) == (
        "node node-1: claim default/a and claim default/b do not fit\n"
        "  claim default/a\n"
        "    request r: the first of 2 subrequests that fits\n"
        "      subrequest r/three: wants 3 of class gpu, which does not fit even alone\n"
        "        2 of 2: usable (g0, g1)\n"
        "      subrequest r/two: wants 2 of class gpu\n"
        "        2 of 2: usable alone, but not in combination (g0, g1)\n"
        "  claim default/b\n"
        "    request r: wants 1 of class gpu\n"
        "      2 of 2: usable alone, but not in combination (g0, g1)\n"
        "  these requirements conflict; relaxing any one of them makes the claim fit:\n"
        "    claim default/a, request r (3 of class gpu or 2 of class gpu)\n"
        "    claim default/b, request r (1 of class gpu)\n"
        "  smallest change that would make it fit: lower the count of claim default/a, request r/two from 2 to 1\n"
        "    or: leave out claim default/b, request r\n"
        "    or: lower the count of claim default/a, request r/three from 3 to 1\n"
        "    or: leave out claim default/a, request r\n"
    )


def test_long_lists_are_cut() -> None:
    over = source([gpus(*(device(f"g{number}").attribute("speed", number) for number in range(30)))])
    text = explanation.render(explained.explain(over, claim("c").request("r", device_class="gpu", select=FAST)))
    assert "      gpu.example.com/speed is 9: g9\n      and 20 more with 20 other values\n" in text
    text = explanation.render(explained.explain(over, claim("c").request("r", device_class="gpu", count=31)))
    assert "    30 of 30: usable (g0, g1, g2, g3, g4, g5, g6, g7 and 22 more)\n" in text


def test_names_are_as_long_as_they_must_be() -> None:
    slices = [
        gpus("g0", "g1", name="a"),
        gpus("g0", name="b"),
        resource_slice("c", driver="nic.example.com", pool="a").on_node(NODE).devices("g0"),
    ]
    over = source(slices)
    text = explanation.render(explained.explain(over, claim("c").request("r", device_class="gpu", count=9)))
    assert f"    3 of 4: usable ({DRIVER}/a/g0, g1, b/g0)\n" in text
    assert 'driver is "nic.example.com": nic.example.com/a/g0\n' in text


def test_no_devices_at_all() -> None:
    text = explanation.render(explained.explain(source([]), claim("c").request("r", device_class="gpu")))
    assert text == (
        "node node-1: claim default/c does not fit\n"
        "  request r: wants 1 of class gpu, which does not fit even alone\n"
        "    there are no devices at all\n"
        "  this requirement cannot be met, even alone:\n"
        "    request r (1 of class gpu)\n"
        "  no single change was found that would make it fit\n"
    )


def test_documents_are_plain_json() -> None:
    over = source([gpus("g0", device("g1").taint("hot", value="very"))])
    found = explained.explain(over, claim("c").request("r", device_class="gpu", count=2))
    document = explanation.to_document(found)
    assert json.loads(json.dumps(document)) == document
    [way] = document["claims"][0]["requests"][0]["alternatives"]
    assert way["obstacles"] == [
        {
            "cause": {"kind": "tainted", "taints": [{"key": "hot", "value": "very", "effect": "NoSchedule"}]},
            "count": 1,
            "devices": [f"{DRIVER}/gpus/g1"],
        }
    ]
    assert document["changes"][0]["kind"] == "tolerate"


def test_nodes_with_the_same_reasons_stand_together() -> None:
    names = ["node-1", "node-2", "node-3", "node-4"]
    slices = [resource_slice(name, driver=DRIVER).on_node(name).devices("g0", "g1") for name in names]
    over = source(
        slices,
        held=[claim("x").allocated(("r", DRIVER, "node-2", "g0")), claim("y").allocated(("r", DRIVER, "node-4", "g1"))],
    )
    wanted = [explained.defaulted(claim("c").request("r", device_class="gpu", count=3))]
    explainer = explanation.Explainer(over)
    found = survey.survey(explainer, map(allocator.Node, names), claims=wanted, most=5)
    assert [(group.explanation.node, group.others) for group in found.groups] == [
        ("node-1", ("node-3",)),
        ("node-2", ("node-4",)),
    ]
    assert found.unexplained == ()
    cut = survey.survey(explainer, map(allocator.Node, names), claims=wanted, most=1)
    assert (len(cut.groups), cut.unexplained) == (1, ("node-2", "node-4"))


def test_an_inventory_follows_the_catalog() -> None:
    over = source([gpus("g0")])
    explainer = explanation.Explainer(over)
    wanted = [explained.defaulted(claim("c").request("r", device_class="gpu", count=2))]
    node = allocator.Node(NODE)
    assert explainer.explain(node, wanted).claims[0].requests[0].alternatives[0].considered == 1
    over.catalog.put(resource_slice("far", driver=DRIVER).on_node("node-2").devices("g1", "g2").build())
    assert explainer.explain(node, wanted).claims[0].requests[0].alternatives[0].considered == 3
