"""SPDY frames of a Go peer, and malformed frames."""

import struct
import zlib

import pytest

from drachma.node.endpoint import spdy
from drachma.node.endpoint.spdy import Data, Decoder, Encoder, Goodbye, Opened, Ping, Reset, SpdyError

DICTIONARY_SUM = 0xE3C6A7C2
"""The check sum of the dictionary that the protocol prescribes, as Go's peers name it in their first headers."""


def _control(kind: int, payload: bytes, *, version: int = 3) -> bytes:
    return struct.pack(">II", 0x80000000 | version << 16 | kind, len(payload)) + payload


def _opening(stream: int, headers: dict[str, str], compressor: "zlib._Compress") -> bytes:
    block = struct.pack(">I", len(headers))
    for text in (text for pair in headers.items() for text in pair):
        block += struct.pack(">I", len(text)) + text.encode()
    packed = compressor.compress(block) + compressor.flush(zlib.Z_SYNC_FLUSH)
    return _control(1, struct.pack(">IIH", stream, 0, 0) + packed)


def _compressor() -> "zlib._Compress":
    return zlib.compressobj(zdict=spdy._DICTIONARY)


def test_the_dictionary_is_the_one_of_the_protocol() -> None:
    assert zlib.adler32(spdy._DICTIONARY) == DICTIONARY_SUM


def test_streams_share_the_compression_of_their_headers() -> None:
    compressor, decoder = _compressor(), Decoder()
    for number in (1, 3):
        headers = {"streamtype": "data", "port": "8080", "requestid": str(number)}
        assert list(decoder.feed(_opening(number, headers, compressor))) == [Opened(number, headers)]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_frames_may_come_in_any_pieces(size: int) -> None:
    encoder = Encoder()
    sent = encoder.data(5, b"hello") + _control(6, struct.pack(">I", 9)) + encoder.data(5, b"", is_last=True)
    sent += encoder.reset(5) + _control(4, b"\0" * 4) + _control(7, b"\0" * 8)
    decoder = Decoder()
    frames = [frame for at in range(0, len(sent), size) for frame in decoder.feed(sent[at : at + size])]
    assert frames == [Data(5, b"hello", False), Ping(9), Data(5, b"", True), Reset(5), Goodbye()]


@pytest.mark.parametrize(
    ("sent", "want"),
    [
        pytest.param(_control(6, b"\0\0\0\1", version=2), "version 2, where 3 is spoken", id="version"),
        pytest.param(struct.pack(">II", 1, 0xFFFFFF), "a frame of 16777215 bytes", id="too-large"),
        pytest.param(_control(1, b"\0" * 10 + b"no zlib"), "incorrect header check", id="no-headers"),
        pytest.param(_control(6, b"\0"), "unpack", id="cut-off"),
    ],
)
def test_what_is_no_spdy(sent: bytes, want: str) -> None:
    with pytest.raises(SpdyError, match=want):
        list(Decoder().feed(sent))


def test_headers_are_bounded() -> None:
    bomb = {"name": "x" * 10_000_000}
    with pytest.raises(SpdyError, match="headers of more than"):
        list(Decoder().feed(_opening(1, bomb, _compressor())))
