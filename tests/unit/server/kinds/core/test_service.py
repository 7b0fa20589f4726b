"""Services: their addresses and ports, and what becomes of them when the type changes."""

import asyncio
from typing import Any

import pytest

from drachma.server.kinds.core import clusterips
from drachma.server.wire import app
from drachma.values import serviceranges
from tests.unit.server import client
from tests.unit.server.client import Client

SERVICES = "/api/v1/namespaces/default/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
MERGE = "application/merge-patch+json"


def a_service(name: str = "s", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def problem(answer: Any) -> str:
    assert answer.code == 422, answer.body
    return str(answer.body["message"].partition(" is invalid: ")[2])


async def test_one_of_many_gets_an_address(server: Client) -> None:
    created = [a_service(f"s{number}", clusterIP="10.96.7.7") for number in range(10)]
    answers = await asyncio.gather(*(server.call("POST", SERVICES, each) for each in created))
    assert sorted(answer.code for answer in answers) == [201] + [422] * 9
    refusal = next(answer for answer in answers if answer.code == 422)
    want = 'spec.clusterIPs: Invalid value: ["10.96.7.7"]: failed to allocate IP 10.96.7.7: '
    assert problem(refusal) == f"{want}provided IP is already allocated"


async def test_an_address_is_an_object_with_its_service(server: Client) -> None:
    address = (await server.call("POST", SERVICES, a_service())).body["spec"]["clusterIP"]
    booked = (await server.call("GET", f"{ADDRESSES}/{address}")).body
    assert booked["spec"]["parentRef"] == {"resource": "services", "namespace": "default", "name": "s"}
    await server.call("DELETE", f"{SERVICES}/s")
    assert (await server.call("GET", f"{ADDRESSES}/{address}")).code == 404
    again = await server.call("POST", SERVICES, a_service("t", clusterIP=address))
    assert again.code == 201
    assert (await server.call("GET", f"{ADDRESSES}/{address}")).body["spec"]["parentRef"]["name"] == "t"


def on_nodes(name: str, **port: int) -> dict[str, Any]:
    return a_service(name, type="NodePort", ports=[{"port": 80, **port}])


def ports_of(answers: Any) -> list[int]:
    return [port["nodePort"] for answer in answers for port in answer.body["spec"]["ports"]]


async def test_one_of_many_gets_a_port(server: Client) -> None:
    created = [on_nodes(f"s{number}", nodePort=30007) for number in range(10)]
    answers = await asyncio.gather(*(server.call("POST", SERVICES, each) for each in created))
    assert sorted(answer.code for answer in answers) == [201] + [422] * 9
    refusal = next(answer for answer in answers if answer.code == 422)
    assert problem(refusal) == "spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated"


async def test_ports_that_are_given_at_the_same_time_differ(server: Client) -> None:
    first: dict[int, list[str]] = {}
    addresses = clusterips.Addresses(server.store, serviceranges.DEFAULT)
    for name in (f"s{number}" for number in range(3000)):
        first.setdefault(next(addresses.free_ports(f"default/{name}", excluded=())), []).append(name)
    rivals = next(names for names in first.values() if len(names) > 1)
    answers = await asyncio.gather(*(server.call("POST", SERVICES, on_nodes(name)) for name in rivals))
    assert [answer.code for answer in answers] == [201] * len(rivals)
    assert len(set(ports_of(answers))) == len(rivals)


async def test_a_port_that_is_given_up_is_free(server: Client) -> None:
    await server.call("POST", SERVICES, on_nodes("s", nodePort=30007))
    patch = {"spec": {"ports": [{"port": 80, "nodePort": 30008}]}}
    assert (await server.call("PATCH", f"{SERVICES}/s", patch, content_type=MERGE)).code == 200
    assert (await server.call("POST", SERVICES, on_nodes("t", nodePort=30007))).code == 201
    assert (await server.call("DELETE", f"{SERVICES}/s")).code == 200
    assert (await server.call("POST", SERVICES, on_nodes("u", nodePort=30008))).code == 201
    # What t has is booked for t, so that s did not take it along.
    assert (await server.call("POST", SERVICES, on_nodes("v", nodePort=30007))).code == 422


async def test_changes_at_the_same_time_get_one_port_once(server: Client) -> None:
    for name in ("s", "t"):
        await server.call("POST", SERVICES, a_service(name))
    patch = {"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30009}]}}
    answers = await asyncio.gather(
        *(server.call("PATCH", f"{SERVICES}/{name}", patch, content_type=MERGE) for name in ("s", "t"))
    )
    assert sorted(answer.code for answer in answers) == [200, 422]


async def test_when_there_is_no_port_left(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusterips, "NODE_PORTS", range(30000, 30001))
    assert (await server.call("POST", SERVICES, on_nodes("s"))).code == 201
    answer = await server.call("POST", SERVICES, on_nodes("t"))
    want = "Internal error occurred: failed to allocate a nodePort: range is full"
    assert (answer.code, answer.body["message"]) == (500, want)


async def test_what_is_not_stored_is_not_taken(server: Client) -> None:
    tried = await server.call("POST", f"{SERVICES}?dryRun=All", a_service(clusterIP="10.96.7.8"))
    assert tried.code == 201
    assert (await server.call("GET", f"{ADDRESSES}/10.96.7.8")).code == 404


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"clusterIP": "1.2.3.4"},
            'spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: '
            "the provided network does not match the current range",
            id="out-of-range",
        ),
        pytest.param(
            {"clusterIPs": ["10.96.7.9"]},
            'spec.clusterIPs: Invalid value: ["10.96.7.9"]: must be empty when `clusterIP` is not specified',
            id="several-without-one",
        ),
        pytest.param(
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid "
            "ports is 30000-32767",
            id="port-out-of-range",
        ),
        pytest.param(
            {"ports": [{"port": 80, "nodePort": 30080}]},
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
            id="port-on-nodes-inside",
        ),
        pytest.param(
            {"externalIPs": ["127.0.0.1"]},
            'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
            id="loopback",
        ),
        pytest.param(
            {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.1/8"]},
            'spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix '
            'length (e.g. "10.0.0.0/8")',
            id="half-a-network",
        ),
        pytest.param(
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less "
            "than 86400",
            id="no-time",
        ),
        pytest.param(
            {"loadBalancerClass": "a.io/b"},
            "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
            id="class-without-balancer",
        ),
    ],
)
async def test_what_is_refused(server: Client, spec: dict[str, Any], want: str) -> None:
    assert problem(await server.call("POST", SERVICES, a_service(**spec))) == want


async def test_ports_on_nodes_are_given_kept_and_taken_once(server: Client) -> None:
    created = (await server.call("POST", SERVICES, a_service(type="NodePort"))).body
    (port,) = created["spec"]["ports"]
    assert 30000 <= port["nodePort"] <= 32767
    replaced = await server.call(
        "PUT", f"{SERVICES}/s", {**created, "spec": {**created["spec"], "ports": [{"port": 80}]}}
    )
    assert replaced.body["spec"]["ports"] == [port]
    other = a_service("t", type="NodePort", ports=[{"port": 80, "nodePort": port["nodePort"]}])
    want = f"spec.ports[0].nodePort: Invalid value: {port['nodePort']}: provided port is already allocated"
    assert problem(await server.call("POST", SERVICES, other)) == want
    inside = await server.call("PATCH", f"{SERVICES}/s", {"spec": {"type": "ClusterIP"}}, content_type=MERGE)
    assert "nodePort" not in inside.body["spec"]["ports"][0]
    assert "externalTrafficPolicy" not in inside.body["spec"]


async def test_a_service_elsewhere_gives_its_address_back(server: Client) -> None:
    address = (await server.call("POST", SERVICES, a_service())).body["spec"]["clusterIP"]
    patch = {"spec": {"type": "ExternalName", "externalName": "a.example"}}
    moved = await server.call("PATCH", f"{SERVICES}/s", patch, content_type=MERGE)
    assert moved.code == 200, moved.body
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & set(moved.body["spec"])
    assert (await server.call("POST", SERVICES, a_service("t", clusterIP=address))).code == 201


# IP families


@pytest.fixture
async def dual() -> Client:
    """A server of a dual-stack cluster."""
    ranges = serviceranges.ServiceRanges.parse("10.96.0.0/12,fd00:10:96::/112")
    return await client.start(additions=app.Additions(service_ranges=ranges))


def stacks(answer: Any) -> tuple[list[str], list[str], str]:
    """Families of the addresses, families and policy of a service."""
    assert answer.code in (200, 201), answer.body
    spec = answer.body["spec"]
    assert spec["clusterIP"] == spec["clusterIPs"][0]
    families = ["IPv6" if address.startswith("fd00:10:96::") else "IPv4" for address in spec["clusterIPs"]]
    return families, spec["ipFamilies"], spec["ipFamilyPolicy"]


@pytest.mark.parametrize(
    ("spec", "want_families", "want_policy"),
    [
        pytest.param({}, ["IPv4"], "SingleStack", id="the-primary-family"),
        pytest.param({"ipFamilies": ["IPv6"]}, ["IPv6"], "SingleStack", id="the-other-family"),
        pytest.param(
            {"ipFamilyPolicy": "PreferDualStack"}, ["IPv4", "IPv6"], "PreferDualStack", id="both-are-preferred"
        ),
        pytest.param(
            {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6"]},
            ["IPv6", "IPv4"],
            "RequireDualStack",
            id="both-are-required-in-an-order",
        ),
        pytest.param({"ipFamilies": ["IPv6", "IPv4"]}, ["IPv6", "IPv4"], "RequireDualStack", id="both-are-named"),
        pytest.param({"clusterIP": "fd00:10:96::7"}, ["IPv6"], "SingleStack", id="an-address-tells-its-family"),
    ],
)
async def test_families_of_a_dual_stack_cluster(
    dual: Client, spec: dict[str, Any], want_families: list[str], want_policy: str
) -> None:
    created = await dual.call("POST", SERVICES, a_service(**spec))
    assert stacks(created) == (want_families, want_families, want_policy)


async def test_a_service_grows_and_shrinks(dual: Client) -> None:
    await dual.call("POST", SERVICES, a_service())

    async def set_policy(policy: str) -> Any:
        return await dual.call("PATCH", f"{SERVICES}/s", {"spec": {"ipFamilyPolicy": policy}}, content_type=MERGE)

    both = ["IPv4", "IPv6"]
    assert stacks(await set_policy("PreferDualStack")) == (both, both, "PreferDualStack")
    assert stacks(await set_policy("SingleStack")) == (["IPv4"], ["IPv4"], "SingleStack")


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"ipFamilyPolicy": "RequireDualStack"},
            'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": '
            "this cluster is not configured for dual-stack services",
            id="dual-stack",
        ),
        pytest.param(
            {"ipFamilies": ["IPv6"]},
            'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
            id="other-family",
        ),
    ],
)
async def test_what_a_single_stack_cluster_refuses(server: Client, spec: dict[str, Any], want: str) -> None:
    assert problem(await server.call("POST", SERVICES, a_service(**spec))) == want


async def test_a_single_stack_cluster_gives_one_address_if_both_are_preferred(server: Client) -> None:
    created = await server.call("POST", SERVICES, a_service(ipFamilyPolicy="PreferDualStack"))
    assert stacks(created) == (["IPv4"], ["IPv4"], "PreferDualStack")
