"""Addresses of pods that are only imagined."""

from drachma.api import meta, pod
from drachma.node.podaddresses import PodAddresses


def _pod(uid: str, address: str = "") -> pod.Pod:
    return pod.Pod(metadata=meta.ObjectMeta(uid=uid), status=pod.PodStatus(pod_ip=address))


def test_each_pod_keeps_an_address_of_its_own() -> None:
    addresses = PodAddresses("127.1.3.4")
    assert addresses.of(_pod("a")) == "10.3.4.1"
    assert addresses.of(_pod("b")) == "10.3.4.2"
    assert addresses.of(_pod("a")) == "10.3.4.1"
    addresses.release("a")
    assert addresses.of(_pod("c")) == "10.3.4.1"


def test_an_address_from_before_is_kept_where_nobody_has_it() -> None:
    addresses = PodAddresses("127.1.3.4")
    assert addresses.of(_pod("a", "10.3.4.7")) == "10.3.4.7"
    assert addresses.of(_pod("b", "10.3.4.7")) == "10.3.4.1"
    assert addresses.of(_pod("c", "10.9.9.9")) == "10.3.4.2"


def test_all_may_be_taken() -> None:
    addresses = PodAddresses("127.1.0.1")
    given = {addresses.of(_pod(str(number))) for number in range(255)}
    assert len(given) == 255
    assert "" in given
