"""URLs in CEL: ``url("https://example.com/x")`` and its functions.

Called through ``library``. Texts are read by upstream's rules, which are not those of ``urllib``: what is refused, with
which message, and how a path is spelled again all differ.
"""

from __future__ import annotations

import re
from typing import Any, Final

from drachma.cel.runtime import faults, networks
from drachma.values import quotation

_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_ALNUM: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_UNRESERVED: Final = _ALNUM | frozenset(b"-_.~")
_PLAIN: Final = {
    "host": _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\""),
    "path": _UNRESERVED | frozenset(b"$&+,/:;=@"),
    "user": _UNRESERVED | frozenset(b"$&+,;="),
    "query": _UNRESERVED,
    "fragment": _UNRESERVED | frozenset(b"$&+,/:;=?@!()*"),
}
_USERINFO: Final = frozenset("-._:~!$&'()*+,;=%@") | frozenset(map(chr, _ALNUM))
_SPELLABLE: Final = frozenset(b"!$&'()*+,;=:@[]%")
_MAX_PARAMETERS: Final = 10_000
_STRAY_BYTE: Final = re.compile(r"\\udc([89a-f][0-9a-f])")


class URL:
    """A parsed URL; texts hold the bytes as upstream keeps them, decoded where they are UTF-8."""

    __slots__ = (
        "force_query", "fragment", "host", "omit_host", "opaque", "path", "raw_fragment", "raw_path", "raw_query",
        "scheme", "user",
    )  # fmt: skip

    def __init__(self) -> None:
        self.scheme = ""
        self.opaque = ""
        self.user: tuple[bytes, bytes | None] | None = None
        self.host = b""
        self.path = b""
        self.raw_path = ""
        self.raw_query = ""
        self.force_query = False
        self.omit_host = False
        self.fragment = b""
        self.raw_fragment = ""

    def escaped_path(self) -> str:
        """Return the path as it is written in a URL."""
        return _respell(self.raw_path, self.path, "path")

    def __str__(self) -> str:
        out = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            out += self.opaque
        else:
            out += self._authority()
            path = self.escaped_path()
            if path and path[0] != "/" and self.host:
                out += "/"
            if not out and ":" in path.partition("/")[0]:
                out += "./"
            out += path
        if self.force_query or self.raw_query:
            out += f"?{self.raw_query}"
        if self.fragment:
            out += f"#{_respell(self.raw_fragment, self.fragment, 'fragment')}"
        return out

    def _authority(self) -> str:
        if not (self.scheme or self.host or self.user is not None):
            return ""
        if self.omit_host and not self.host and self.user is None:
            return ""
        out = "//" if self.host or self.path or self.user is not None else ""
        if self.user is not None:
            name, password = self.user
            out += _escape(name, "user")
            if password is not None:
                out += f":{_escape(password, 'user')}"
            out += "@"
        return out + _escape(self.host, "host")

    def host_and_port(self) -> tuple[str, str]:
        """Return the host without brackets, and the port without its colon."""
        host, port = _text(self.host), ""
        colon = host.rfind(":")
        if colon >= 0 and _is_optional_port(host[colon:]):
            host, port = host[:colon], host[colon + 1 :]
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port


def parse(text: str) -> URL:
    """Return the absolute URL or path spelled by ``text``. Raises Fault with upstream's message."""
    try:
        parse_request(text)
    except ValueError as error:
        raise faults.Fault(f"URL parse error during conversion from string: {error}") from None
    head, _, fragment = text.partition("#")
    try:
        result = _parse(head, via_request=False)
    except ValueError as error:
        message = f"parse {quotation.quote(head)}: {error}"
        raise faults.Fault(f"URL parse error during conversion from string: {message}") from None
    if fragment:
        try:
            result.fragment = _unescape(fragment, "fragment")
        except ValueError as error:
            message = f"parse {quotation.quote(text)}: {error}"
            raise faults.Fault(f"URL parse error during conversion from string: {message}") from None
        if _escape(result.fragment, "fragment") != fragment:
            result.raw_fragment = fragment
    return result


def parse_request(text: str) -> URL:
    """Return the URL of a request line. Raises ValueError with upstream's message."""
    try:
        return _parse(text, via_request=True)
    except ValueError as error:
        raise ValueError(f"parse {quotation.quote(text)}: {error}") from None


def _parse(text: str, *, via_request: bool) -> URL:
    if any(character < " " or character == "\x7f" for character in text):
        raise ValueError("net/url: invalid control character in URL")
    if not text and via_request:
        raise ValueError("empty url")
    url = URL()
    if text == "*":
        url.path = b"*"
        return url
    scheme, remainder = _split_scheme(text)
    url.scheme = scheme.lower()
    if remainder.endswith("?") and remainder.count("?") == 1:
        url.force_query = True
        remainder = remainder[:-1]
    else:
        remainder, _, url.raw_query = remainder.partition("?")
    if not remainder.startswith("/"):
        if url.scheme:
            url.opaque = remainder
            return url
        if via_request:
            raise ValueError("invalid URI for request")
        if ":" in remainder.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    relative = not via_request and not remainder.startswith("///")
    if (url.scheme or relative) and remainder.startswith("//"):
        authority, slash, tail = remainder[2:].partition("/")
        remainder = slash + tail
        url.user, url.host = _parse_authority(url.scheme, authority)
    elif url.scheme and remainder.startswith("/"):
        url.omit_host = True
    url.path = _unescape(remainder, "path")
    if _escape(url.path, "path") != remainder:
        url.raw_path = remainder
    return url


def _split_scheme(text: str) -> tuple[str, str]:
    for position, character in enumerate(text):
        if character.isascii() and character.isalpha():
            continue
        if character in "0123456789+-.":
            if position == 0:
                break
        elif character == ":":
            if position == 0:
                raise ValueError("missing protocol scheme")
            return text[:position], text[position + 1 :]
        else:
            break
    return "", text


def _parse_authority(scheme: str, authority: str) -> tuple[tuple[bytes, bytes | None] | None, bytes]:
    userinfo, at, host = authority.rpartition("@")
    parsed = _parse_host(scheme, host)
    if not at:
        return None, parsed
    if not all(character in _USERINFO for character in userinfo):
        raise ValueError("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(":")
    return (_unescape(name, "user"), _unescape(password, "user") if colon else None), parsed


def _parse_host(scheme: str, host: str) -> bytes:
    bracket = host.rfind("[")
    if bracket > 0:
        raise ValueError("invalid IP-literal")
    if bracket == 0:
        return _parse_literal(host)
    first = host.find(":")
    if first >= 0:
        last = host.rfind(":")
        if last != first and scheme not in ("http", "https"):
            first = last
        if not _is_optional_port(host[first:]):
            raise ValueError(f"invalid port {quotation.quote(host[first:])} after host")
    return _unescape(host, "host")


def _parse_literal(host: str) -> bytes:
    close = host.rfind("]")
    if close < 0:
        raise ValueError("missing ']' in host")
    port = host[close + 1 :]
    if not _is_optional_port(port):
        raise ValueError(f"invalid port {quotation.quote(port)} after host")
    inner = host[1:close]
    zone = inner.find("%25")
    zone = zone if zone >= 0 else len(inner)
    name = _unescape(inner[:zone], "host") + _unescape(inner[zone:], "zone")
    try:
        address = networks.parse_host(_text(name))
    except ValueError as error:
        raise ValueError(f"invalid host: {error}") from None
    if address.version == 4:
        raise ValueError("invalid IP-literal")
    return b"[" + name + b"]" + port.encode()


def _is_optional_port(text: str) -> bool:
    return not text or (text[0] == ":" and all(character in "0123456789" for character in text[1:]))


def _unescape(text: str, mode: str) -> bytes:
    data = text.encode()
    out = bytearray()
    position = 0
    while position < len(data):
        byte = data[position]
        if byte == 0x25:
            pair = data[position + 1 : position + 3]
            if len(pair) < 2 or pair[0] not in _HEX or pair[1] not in _HEX:
                raise ValueError(f"invalid URL escape {_quoted(data[position : position + 3])}")
            value = int(pair, 16)
            is_valid = pair == b"25"
            if mode == "zone":
                is_valid = is_valid or value == 0x20 or value in _PLAIN["host"]
            if mode in ("host", "zone") and not is_valid and (mode == "zone" or value < 0x80):
                raise ValueError(f"invalid URL escape {_quoted(data[position : position + 3])}")
            out.append(value)
            position += 3
            continue
        if mode in ("host", "zone") and byte < 0x80 and byte not in _PLAIN["host"]:
            raise ValueError(f"invalid character {_quoted(data[position : position + 1])} in host name")
        out.append(0x20 if byte == 0x2B and mode == "query" else byte)
        position += 1
    return bytes(out)


def _escape(data: bytes, mode: str) -> str:
    plain = _PLAIN[mode]
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in data)


def _respell(raw: str, decoded: bytes, mode: str) -> str:
    """Return the spelling it came with where that is acceptable, otherwise the default one."""
    acceptable = _PLAIN[mode] | _SPELLABLE
    if raw and all(byte in acceptable for byte in raw.encode()):
        return raw
    return "*" if mode == "path" and decoded == b"*" else _escape(decoded, mode)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _quoted(data: bytes) -> str:
    quoted = quotation.quote(data.decode("utf-8", "surrogateescape"))
    return _STRAY_BYTE.sub(r"\\x\1", quoted)


def _query(url: URL) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    if url.raw_query.count("&") + 1 > _MAX_PARAMETERS:
        return result
    for part in url.raw_query.split("&"):
        if not part or ";" in part:
            continue
        name, _, value = part.partition("=")
        try:
            decoded, content = _unescape(name, "query"), _unescape(value, "query")
        except ValueError:
            continue
        result.setdefault(_text(decoded), []).append(_text(content))
    return result


def _is_url(text: str) -> bool:
    try:
        parse_request(text)
    except ValueError:
        return False
    return True


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "string_to_url": parse,
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: _text(url.host),
    "url_get_hostname": lambda url: url.host_and_port()[0],
    "url_get_port": lambda url: url.host_and_port()[1],
    "url_get_escaped_path": lambda url: url.escaped_path(),
    "url_get_query": _query,
    "is_url_string": _is_url,
}
