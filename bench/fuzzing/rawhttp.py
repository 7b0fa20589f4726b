"""Raw bytes for HTTP connections: smuggling, odd chunks, pipelining and half requests."""

from __future__ import annotations

import random
from typing import Final

_GET: Final = "GET /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\n"
_POST: Final = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\n"
_BODY: Final = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"}}'


def generate(token: str, *, rng: random.Random) -> bytes:
    """Return the bytes of one connection; the token is that of a user without roles."""
    secret = f"Authorization: Bearer {token}\r\n"
    inner = f"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n{secret}\r\n"
    size = len(_BODY)
    chunked = f"{_POST}{secret}Transfer-Encoding: chunked\r\n"
    chunk = f"{size:x}\r\n{_BODY}\r\n0\r\n"
    odd_size = rng.choice(("-1", "fffffffffffffffff", "0x5", "g", "5;a=b", " 5"))
    samples = (
        f"{_POST}{secret}Content-Length: {size}\r\nContent-Length: {size + 1}\r\n\r\n{_BODY}",
        f"{_POST}{secret}Content-Length: {size}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
        f"{chunked}Transfer-Encoding: identity\r\n\r\n{chunk}\r\n",
        f"{_POST}{secret}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        f"{_POST}{secret}Transfer-Encoding: xchunked\r\n\r\n{size:x}\r\n{_BODY}\r\n0\r\n\r\n",
        f"{chunked}\r\n{odd_size}\r\nabcde\r\n0\r\n\r\n",
        f"{chunked}\r\n{chunk}Authorization: Bearer x\r\n\r\n",
        f"{_POST}{secret}Content-Length: {rng.choice(('-1', '+5', '1e3', '9' * 30, '0x10', ''))}\r\n\r\n{_BODY}",
        f"{_POST}{secret}Expect: 100-continue\r\nContent-Length: {size}\r\n\r\n{_BODY}",
        f"{_GET}{secret}X-Fold: a\r\n b\r\n\r\n",
        f"{_GET}{secret}{secret}\r\n",
        f"{_GET}Authorization: Bearer \x00\x01\r\n\r\n",
        f"{_GET}{secret}X-Nul: a\x00b\r\n\r\n",
        f"{_GET}{secret}" + "".join(f"X-{number}: y\r\n" for number in range(rng.choice((100, 3000)))) + "\r\n",
        f"{_GET}{secret}X-Long: {'z' * rng.choice((9_000, 70_000, 1_100_000))}\r\n\r\n",
        f"GET /{'a' * rng.choice((9_000, 70_000))} HTTP/1.1\r\nHost: x\r\n{secret}\r\n",
        f"GET https://other.example/api/v1/pods HTTP/1.1\r\nHost: x\r\n{secret}\r\n",
        f"GET /api/v1/pods#x HTTP/1.1\r\nHost: x\r\n{secret}\r\n",
        f"CONNECT 127.0.0.1:6443 HTTP/1.1\r\nHost: x\r\n{secret}\r\n",
        f"GET /api/v1/pods HTTP/{rng.choice(('1.0', '0.9', '2.0', '1.10', 'x'))}\r\nHost: x\r\n{secret}\r\n",
        f"{_GET}{secret}\n\n".replace("\r\n", "\n"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        "GET /api/v1/pods\r\n\r\n",
        f"OPTIONS * HTTP/1.1\r\nHost: x\r\n{secret}\r\n",
        f"{_GET}{secret}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
        f"{_GET}{secret}\r\n" * rng.randint(2, 30),
        f"{_GET}{secret}\r\n{_POST}{secret}Content-Length: {size}\r\n\r\n{_BODY}{_GET}{secret}\r\n",
        f"{_GET}{secret}\r\n"[: rng.randint(1, 60)],
        f"{_POST}{secret}Content-Length: 100000\r\n\r\n{_BODY}",
        f"GET /api/v1/namespaces/default/pods/a/%0d%0aHost:y HTTP/1.1\r\nHost: x\r\n{secret}\r\n",
    )
    data = rng.choice(samples).encode("latin-1")
    if rng.random() < 0.2:
        at = rng.randrange(len(data))
        data = data[:at] + rng.randbytes(rng.randint(1, 4)) + data[at:]
    return data if rng.random() < 0.97 else rng.randbytes(rng.randint(1, 3000))
