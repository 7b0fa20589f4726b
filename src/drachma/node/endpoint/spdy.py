"""SPDY/3.1 as far as Kubernetes uses it: streams with headers over one connection. Frames in, frames out; no I/O.

``kubectl port-forward`` uses it in a WebSocket. There is no flow control; the peers have none either.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

_WORDS: Final = (
    "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-ranges|age|"
    "allow|authorization|cache-control|connection|content-base|content-encoding|content-language|content-length|"
    "content-location|content-md5|content-range|content-type|date|etag|expect|expires|from|host|if-match|"
    "if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|location|max-forwards|pragma|"
    "proxy-authenticate|proxy-authorization|range|referer|retry-after|server|te|trailer|transfer-encoding|upgrade|"
    "user-agent|vary|via|warning|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|"
    "keep-alive|origin"
)
_REST: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
_DICTIONARY: Final = (
    b"".join(struct.pack(">I", len(word)) + word.encode() for word in _WORDS.split("|")) + _REST.encode()
)
"""Dictionary with which both sides compress headers."""

_HEAD: Final = 8
_MOST_BYTES: Final = 1 << 20
"""Largest frame that is accepted. The protocol allows larger frames, but no peer sends them."""

_MOST_HEADERS: Final = 64 * 1024
_CONTROL: Final = 0x80000000
_VERSION: Final = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN: Final = 1
_CANCEL: Final = 5


class SpdyError(Exception):
    """The peer sends something other than SPDY/3.1, or a frame that is too large."""


class Opened(NamedTuple):
    """Frame by which the peer opens a stream."""

    stream: int
    headers: Mapping[str, str]


class Data(NamedTuple):
    """Data of the peer on a stream; ``is_last`` ends the stream."""

    stream: int
    data: bytes
    is_last: bool


class Reset(NamedTuple):
    """Frame by which the peer aborts a stream."""

    stream: int


class Ping(NamedTuple):
    """Ping of the peer."""

    number: int


class Goodbye(NamedTuple):
    """Frame after which the peer opens no more streams."""


Frame: TypeAlias = Opened | Data | Reset | Ping | Goodbye


class Decoder:
    """Decodes frames from the bytes of a connection. Frames without a use here are left out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=_DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add bytes, and yield the frames that are complete.

        Raises:
            SpdyError: the bytes are not SPDY frames.
        """
        self._buffer += data
        while len(self._buffer) >= _HEAD:
            word, second = struct.unpack_from(">II", self._buffer)
            flags, length = second >> 24, second & 0xFFFFFF
            if length > _MOST_BYTES:
                raise SpdyError(f"a frame of {length} bytes is larger than {_MOST_BYTES}")
            if len(self._buffer) < _HEAD + length:
                return
            payload = bytes(self._buffer[_HEAD : _HEAD + length])
            del self._buffer[: _HEAD + length]
            if not word & _CONTROL:
                yield Data(word, payload, bool(flags & _FIN))
                continue
            if (word >> 16) & 0x7FFF != _VERSION:
                raise SpdyError(f"version {(word >> 16) & 0x7FFF}, where {_VERSION} is spoken")
            try:
                frame = self._control(word & 0xFFFF, flags, payload)
            except (struct.error, zlib.error) as error:
                raise SpdyError(str(error)) from error
            if frame is not None:
                yield frame

    def _control(self, kind: int, flags: int, payload: bytes) -> Frame | None:
        if kind == _SYN_STREAM:
            (stream,) = struct.unpack_from(">I", payload)
            return Opened(stream & 0x7FFFFFFF, self._headers(payload[10:]))
        if kind == _RST_STREAM:
            return Reset(struct.unpack_from(">I", payload)[0] & 0x7FFFFFFF)
        if kind == _PING:
            return Ping(struct.unpack_from(">I", payload)[0])
        if kind == _GOAWAY:
            return Goodbye()
        return None

    def _headers(self, block: bytes) -> Mapping[str, str]:
        data = self._inflate.decompress(block, _MOST_HEADERS)
        if self._inflate.unconsumed_tail:
            raise SpdyError(f"headers of more than {_MOST_HEADERS} bytes")
        (count,) = struct.unpack_from(">I", data)
        texts: list[str] = []
        at = 4
        for _ in range(2 * min(count, _MOST_HEADERS)):
            (length,) = struct.unpack_from(">I", data, at)
            texts.append(data[at + 4 : at + 4 + length].decode("latin-1"))
            at += 4 + length
        return dict(zip(texts[::2], texts[1::2], strict=True))


class Encoder:
    """Encodes frames, in the order in which they are sent."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=_DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Return the frame that accepts a stream of the peer."""
        block = self._deflate.compress(struct.pack(">I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _frame(_SYN_REPLY, struct.pack(">I", stream) + block)

    def data(self, stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        return struct.pack(">II", stream, (_FIN if is_last else 0) << 24 | len(data)) + data

    def reset(self, stream: int) -> bytes:
        """Return the frame that aborts a stream."""
        return _frame(_RST_STREAM, struct.pack(">II", stream, _CANCEL))

    def ping(self, number: int) -> bytes:
        """Return a ping, or the answer to one."""
        return _frame(_PING, struct.pack(">I", number))


def _frame(kind: int, payload: bytes) -> bytes:
    return struct.pack(">II", _CONTROL | _VERSION << 16 | kind, len(payload)) + payload
