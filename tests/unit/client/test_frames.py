"""Frames and messages: any cut of the stream gives the same messages, and every body of a write arrives as it was."""

import socket
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from msgspec import structs

from drachma import errors
from drachma.api import meta, pod, resourceclaim, struct
from drachma.client import frames, local, messages, target, transactions
from drachma.testing import claim

PLACE = local.Place(group="", version="v1", plural="pods", namespace="ns", name="p")
CLAIM = structs.replace(
    claim("c").request("gpu", device_class="gpu.example.com").build(),
    metadata=meta.ObjectMeta(name="c", namespace="ns", uid="u", resource_version="7"),
)
STATUS = resourceclaim.ResourceClaimStatus(
    reserved_for=(resourceclaim.ResourceClaimConsumerReference(resource="pods", name="p", uid="u"),)
)


class _Transport:
    """Remembers that the connection was aborted."""

    def __init__(self) -> None:
        self.is_aborted = False

    def set_write_buffer_limits(self, **_: int) -> None:
        pass

    def abort(self) -> None:
        self.is_aborted = True


def _receiver() -> tuple[frames.Frames[messages.Answer], list[messages.Answer], _Transport]:
    received: list[messages.Answer] = []
    receiver = frames.Frames[messages.Answer](messages.decode_answer, receive=received.append, lose=lambda: None)
    transport: Any = _Transport()
    receiver.connection_made(transport)
    return receiver, received, transport


def _frame(message: messages.Answer) -> bytes:
    data = messages.encode(message)
    return len(data).to_bytes(4, "big") + data


@hypothesis.given(
    sizes=st.lists(st.integers(0, 300), max_size=6), cuts=st.lists(st.integers(1, 200), min_size=1, max_size=20)
)
def test_messages_arrive_however_the_stream_is_cut(sizes: list[int], cuts: list[int]) -> None:
    sent = [messages.Object(number, b"x" * size) for number, size in enumerate(sizes)]
    stream = b"".join(map(_frame, sent))
    receiver, received, _ = _receiver()
    position = 0
    while position < len(stream):
        for cut in cuts:
            receiver.data_received(stream[position : position + cut])
            position += cut
    assert received == sent


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff\xff\xff\xff", id="too-long"),
        pytest.param(b"\x00\x00\x00\x01\xc1", id="no-msgpack"),
        pytest.param(b"\x00\x00\x00\x02\x91\x63", id="unknown-tag"),
    ],
)
def test_a_bad_frame_ends_the_connection(data: bytes) -> None:
    receiver, received, transport = _receiver()
    receiver.data_received(data)
    assert transport.is_aborted
    assert not received


def test_a_closed_connection_has_no_data() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\x00\x00\x00\x05abcde\x00\x00")
        theirs.shutdown(socket.SHUT_WR)
        assert frames.receive_data(ours) == b"abcde"
        with pytest.raises(errors.UnreachableError):
            frames.receive_data(ours)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a": 1}', id="text"),
        pytest.param(CLAIM, id="object"),
        pytest.param({"finalizers": ["a"], "uid": "u"}, id="document"),
        pytest.param(transactions.StatusChange(CLAIM, STATUS, ("f",)), id="status"),
    ],
)
def test_a_write_arrives_as_it_was_sent(body: local.Body) -> None:
    write = local.Write("patch", PLACE, body, {"fieldManager": ("m",)}, "application/json")
    arrived = messages.unpack(
        messages.decode_request(messages.encode(messages.Write(1, "u", messages.pack(write), False))).write
    )
    if isinstance(body, transactions.StatusChange):
        assert isinstance(arrived.body, transactions.StatusChange)
        assert arrived.body.status == body.status
        assert arrived.body.finalizers == body.finalizers
        assert structs.replace(arrived.body.base, status=CLAIM.status) == CLAIM
    else:
        assert arrived == write


def test_a_change_of_single_fields_carries_the_identity_of_its_object_only() -> None:
    status = pod.PodStatus(resource_claim_statuses=(pod.PodResourceClaimStatus(name="a", resource_claim_name="b"),))
    subject = pod.Pod(metadata=meta.ObjectMeta(name="p", namespace="ns", uid="u"), spec=pod.PodSpec(node_name="n"))
    change = transactions.StatusChange(subject, status, fields=("resourceClaimStatuses",))
    arrived = messages.unpack(messages.pack(local.Write("patch", PLACE, change, {}))).body
    assert isinstance(arrived, transactions.StatusChange)
    assert arrived.base.metadata == subject.metadata
    assert arrived.status == status
    assert arrived.fields == change.fields


def test_absent_texts_travel_as_empty_ones() -> None:
    place = local.Place(group="", version="v1", plural="nodes", namespace=struct.ABSENT_TEXT)
    arrived = messages.decode_request(messages.encode(messages.Get(1, "u", place, False)))
    assert isinstance(arrived, messages.Get)
    assert arrived.place.namespace == ""


def test_a_resource_arrives_as_it_was_sent() -> None:
    resource = target.metadata_of(
        "g", "v1", plural="things", kind="Thing", namespaced=True, other_versions=("v1beta1",)
    )
    assert messages.unpack_resource(messages.pack_resource(resource)) == resource
