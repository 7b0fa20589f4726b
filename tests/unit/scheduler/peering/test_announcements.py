import logging

import msgspec
import pytest

from drachma.accounting import ledger, policies, ports
from drachma.api import resourceclaim
from drachma.claims import identity
from drachma.scheduler.peering import announcements
from drachma.scheduler.plugins.dynamicresources import extendedclaim
from drachma.testing import claim
from drachma.testing import pod as a_pod
from drachma.values import quantity

CLAIM = "claim-uid"
DEVICE = identity.DeviceID("gpu.example.com", "n1", "gpu-0")


def announced(name: str = "p", *, node: str = "n1", device: str = "", share: str | None = None) -> bytes:
    devices = {}
    if device:
        result = announcements.Result(driver="gpu.example.com", pool=node, device=device, share_id=share)
        devices[CLAIM] = (result,)
    return announcements.encode(announcements.Announcement(namespace="default", name=name, node=node, devices=devices))


def read(book: announcements.Announced, peer: str, version: int, **texts: bytes) -> tuple[list[str], list[str]]:
    added, removed = book.read(peer, texts, version=version, now=float(version))
    return [each.uid for each in added], [each.uid for each in removed]


def test_an_announcement_comes_back_as_it_was() -> None:
    demand = ledger.Demand(
        (("cpu", 500), ("example.com/gpu", 1)),
        500,
        2**30,
        (ports.HostPort("0.0.0.0", "TCP", 80),),
        (policies.PoolUse("default/c", (("cpu", 2000),), (("cpu", 500),)),),
    )
    share = announcements.Result(
        driver="nic.example.com",
        pool="net",
        device="nic-0",
        share_id="share-1",
        consumed_capacity={"bandwidth": quantity.Quantity.parse("1G")},
    )
    made = announcements.Announcement(
        namespace="default", name="p", number=7, node="n1", demand=demand, devices={"c": (share,)}
    )
    texts = announcements.split(
        announcements.join({"uid": announcements.encode(made), "gone": announcements.TAKEN_BACK})
    )
    book = announcements.Announced()
    (record,), _ = book.read("peer", texts, version=3, now=0.0)
    assert (record.peer, record.uid, record.version) == ("peer", "uid", 3)
    assert record.content == made


@pytest.mark.parametrize("text", [pytest.param("", id="empty"), pytest.param("[1]", id="of-another-kind")])
def test_nothing_is_read_from(text: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert announcements.split(text) == {}
    assert bool(caplog.records) == bool(text)


def test_what_is_said_again_keeps_its_version() -> None:
    book = announcements.Announced()
    assert read(book, "a", 1, p=announced("p")) == (["p"], [])
    assert read(book, "a", 2, p=announced("p"), q=announced("q")) == (["q"], [])
    assert [(each.uid, each.version) for each in book.node_records("n1")] == [("p", 1), ("q", 2)]


def test_what_is_said_differently_is_new() -> None:
    book = announcements.Announced()
    read(book, "a", 1, p=announced("p", device="gpu-0"))
    assert read(book, "a", 2, p=announced("p", node="n2")) == (["p"], ["p"])
    assert book.node_records("n1") == ()
    assert book.device_records(DEVICE) == ()
    assert [each.version for each in book.node_records("n2")] == [2]


def test_what_is_taken_back_stands_no_longer() -> None:
    book = announcements.Announced()
    read(book, "a", 1, p=announced("p", device="gpu-0"))
    assert read(book, "a", 2, p=announcements.TAKEN_BACK) == ([], ["p"])
    assert book.pod_records("p") == book.node_records("n1") == book.device_records(DEVICE) == ()
    assert read(book, "a", 3) == ([], [])


def test_what_disappears_stands_until_the_pod_is_seen_bound() -> None:
    book = announcements.Announced()
    read(book, "a", 1, p=announced("p"))
    assert read(book, "a", 2) == ([], [])
    assert [each.uid for each in book.node_records("n1")] == ["p"]
    assert [each.uid for each in book.bound("p", allocated=())] == ["p"]
    assert book.node_records("n1") == ()


@pytest.mark.parametrize("is_pod_first", [pytest.param(True, id="pod-first"), pytest.param(False, id="claim-first")])
def test_what_is_bound_stands_until_its_claim_is_seen_with_its_devices(is_pod_first: bool) -> None:
    """Pods and claims are watched separately: a device must not look free when only the pod was seen."""
    book = announcements.Announced()
    read(book, "a", 1, p=announced("p", device="gpu-0"))
    read(book, "a", 2)
    if is_pod_first:
        assert book.bound("p", allocated=()) == []
        assert [each.uid for each in book.device_records(DEVICE)] == ["p"]
        settled = book.allocate(CLAIM, allocated={CLAIM})
    else:
        assert book.allocate(CLAIM, allocated={CLAIM}) == []
        assert [each.uid for each in book.device_records(DEVICE)] == ["p"]
        settled = book.bound("p", allocated={CLAIM})
    assert [each.uid for each in settled] == ["p"]
    assert book.device_records(DEVICE) == ()


def test_the_claim_of_extended_resources_is_known_by_its_pod() -> None:
    """The claim has no uid before it is written, when it is announced."""
    waiting = a_pod("p").container("c").build()
    drafted = extendedclaim.draft(waiting, uid="in memory")
    written = msgspec.structs.replace(drafted, metadata=msgspec.structs.replace(drafted.metadata, uid="written"))
    assert announcements.claim_key(drafted) == announcements.claim_key(written) == waiting.metadata.uid
    ordinary = claim("c").build()
    assert announcements.claim_key(ordinary) == ordinary.metadata.uid


def test_what_disappears_does_not_stand_for_ever() -> None:
    book = announcements.Announced()
    read(book, "a", 1, p=announced("p"), q=announced("q"))
    read(book, "a", 2, q=announced("q"))
    assert book.expire(now=2 + announcements.LINGER_SECONDS - 1) == []
    assert [each.uid for each in book.expire(now=2 + announcements.LINGER_SECONDS)] == ["p"]
    assert [each.uid for each in book.node_records("n1")] == ["q"]


def test_a_pod_that_is_settled_does_not_come_back_with_the_next_version() -> None:
    book = announcements.Announced()
    read(book, "a", 1, p=announced("p"))
    book.bound("p", allocated=())
    assert read(book, "a", 2, p=announced("p")) == ([], [])
    assert book.pod_records("p") == ()


def test_schedulers_are_kept_apart() -> None:
    book = announcements.Announced()
    read(book, "a", 1, p=announced("p", device="gpu-0"))
    read(book, "b", 2, p=announced("p", node="n2"), q=announced("q"))
    assert {(each.peer, each.version) for each in book.pod_records("p")} == {("a", 1), ("b", 2)}
    assert [each.uid for each in book.drop_all("b")] == ["p", "q"]
    assert [each.peer for each in book.pod_records("p")] == ["a"]
    book.end_all("a", now=5.0)
    assert [each.peer for each in book.device_records(DEVICE)] == ["a"], "it may have been carried out"
    assert [each.uid for each in book.expire(now=100.0)] == ["p"]


@pytest.mark.parametrize(
    ("share", "want"), [pytest.param(None, ("a",), id="the-whole"), pytest.param("s", (), id="a-share")]
)
def test_devices_that_nobody_else_can_have(share: str | None, want: tuple[str, ...]) -> None:
    book = announcements.Announced()
    read(book, "a", 1, p=announced("p", device="gpu-0", share=share))
    assert tuple(each.peer for each in book.device_records(DEVICE)) == want


def test_a_stand_in_is_no_claim_and_takes_no_share_of_one() -> None:
    book = announcements.Announced()
    read(book, "a", 1, p=announced("p", device="gpu-0", share="s"))
    (record,) = book.pod_records("p")
    claim, result = announcements.stand_in(record)
    assert not announcements.is_claim(identity.label(claim.metadata))
    assert announcements.is_claim("default/c")
    assert isinstance(result, resourceclaim.AllocationResult)
    assert result.devices.results[0].share_id != "s"
