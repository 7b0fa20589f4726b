"""Addresses of simulated pods."""

import datetime as dt

from drachma.api import meta, pod
from drachma.node.pods.podaddresses import PodAddresses


def _pod(uid: str, address: str = "") -> pod.Pod:
    return pod.Pod(metadata=meta.ObjectMeta(uid=uid), status=pod.PodStatus(pod_ip=address))


def test_each_pod_keeps_an_address_of_its_own() -> None:
    addresses = PodAddresses("127.1.3.4")
    assert addresses.addresses(_pod("a")) == ("10.3.4.1",)
    assert addresses.addresses(_pod("b")) == ("10.3.4.2",)
    assert addresses.addresses(_pod("a")) == ("10.3.4.1",)
    addresses.release("a")
    assert addresses.addresses(_pod("c")) == ("10.3.4.1",)


def test_an_address_from_before_is_kept_where_nobody_has_it() -> None:
    addresses = PodAddresses("127.1.3.4")
    assert addresses.addresses(_pod("a", "10.3.4.7")) == ("10.3.4.7",)
    assert addresses.addresses(_pod("b", "10.3.4.7")) == ("10.3.4.1",)
    assert addresses.addresses(_pod("c", "10.9.9.9")) == ("10.3.4.2",)


def test_all_may_be_taken() -> None:
    addresses = PodAddresses("127.1.0.1")
    results = {addresses.addresses(_pod(str(number))) for number in range(255)}
    assert len(results) == 255
    assert () in results


def _running(uid: str, address: str, *, minute: int, phase: str = "Running") -> pod.Pod:
    since = dt.datetime(2026, 1, 1, 0, minute, tzinfo=dt.UTC)
    return pod.Pod(
        metadata=meta.ObjectMeta(uid=uid), status=pod.PodStatus(pod_ip=address, start_time=since, phase=phase)
    )


def test_addresses_are_recalled_before_any_is_given() -> None:
    addresses = PodAddresses("127.1.3.4")
    addresses.recall([_running("b", "10.3.4.2", minute=2), _running("a", "10.3.4.1", minute=1), _pod("new")])
    assert addresses.addresses(_pod("new")) == ("10.3.4.3",)
    assert addresses.addresses(_pod("a", "10.3.4.1")) == ("10.3.4.1",)
    assert addresses.addresses(_pod("b", "10.3.4.2")) == ("10.3.4.2",)


def test_of_pods_that_share_an_address_the_older_keeps_it() -> None:
    addresses = PodAddresses("127.1.3.4")
    younger, older = _running("a", "10.3.4.1", minute=2), _running("b", "10.3.4.1", minute=1)
    addresses.recall([younger, older])
    assert addresses.addresses(older) == ("10.3.4.1",)
    assert addresses.addresses(younger) == ("10.3.4.2",)


def test_pods_that_have_ended_keep_no_address() -> None:
    addresses = PodAddresses("127.1.3.4")
    addresses.recall([_running("a", "10.3.4.1", minute=1, phase="Succeeded")])
    assert addresses.addresses(_pod("new")) == ("10.3.4.1",)


def test_a_status_replaces_earlier_addresses() -> None:
    status = PodAddresses("127.1.3.4").status(_pod("a"))
    replace = {"$patch": "replace"}
    assert status == {
        "hostIP": "127.1.3.4",
        "hostIPs": [replace, {"ip": "127.1.3.4"}],
        "podIP": "10.3.4.1",
        "podIPs": [replace, {"ip": "10.3.4.1"}],
    }


def test_pods_on_the_network_of_the_machine_share_its_address() -> None:
    addresses = PodAddresses("127.1.3.4", common="192.0.2.7")
    assert {addresses.status(_pod(uid))["podIP"] for uid in ("a", "b")} == {"192.0.2.7"}


def test_a_node_without_an_address_reports_none() -> None:
    assert PodAddresses("").status(_pod("a")) == {}


def test_pods_of_a_dual_stack_cluster_have_an_address_of_each_family() -> None:
    addresses = PodAddresses("127.1.0.4", families=("IPv6", "IPv4"))
    status = addresses.status(_pod("a"))
    assert status["podIP"] == "fd00:10:0:4::1"
    assert status["podIPs"][1:] == [{"ip": "fd00:10:0:4::1"}, {"ip": "10.0.4.1"}]


def test_addresses_of_ipv6_are_recalled() -> None:
    addresses = PodAddresses("127.1.3.4", families=("IPv6",))
    addresses.recall([_running("a", "fd00:10:3:4::7", minute=1)])
    assert addresses.addresses(_pod("a")) == ("fd00:10:3:4::7",)
    assert addresses.addresses(_pod("b", "fd00:10:9:9::7")) == ("fd00:10:3:4::1",)
    assert addresses.addresses(_pod("c", "fd00:10:3:4::ff")) == ("fd00:10:3:4::2",)
