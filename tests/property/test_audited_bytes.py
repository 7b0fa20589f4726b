"""Requests of any bytes, with an audit log that holds bodies: none fails, and each is in the log to its end."""

import asyncio
import json
import pathlib
import tempfile
import urllib.parse
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from drachma.server import audit
from tests.unit.server import client

POLICY = b"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"

PIECES = (
    b"\xff", b"\xc3", b"\xed\xa0\x80", b"\\ud800", b"\x00", b'"', b"{", b"}", b"[", b"]", b":", b",", b"\\u0000",
    b"\xe2\x80\xa8",
    b'"metadata"', b'{"name":"c"}', b'"spec"', b"1e999", b"null", b"- ", b"\n", b"k8s\x00", b"!!binary ", b"&a ", b"*a",
)  # fmt: skip
ENVELOPE = b'{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c%b"},"spec":{"x":"%b"}}'

texts = some.lists(some.sampled_from(PIECES), max_size=6).map(b"".join)
bodies = some.one_of(texts, some.binary(max_size=40), texts.map(lambda text: ENVELOPE % (text, text)))
media_types = some.sampled_from(
    (
        *["application/json"] * 4,
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/\xff",
    )
)
quoted = some.binary(max_size=12).map(urllib.parse.quote_from_bytes)
requests = some.tuples(
    some.sampled_from(("POST", "POST", "PUT", "PATCH", "DELETE", "GET")),
    bodies,
    media_types,
    quoted,
    some.binary(max_size=20),
)


async def serve(several: list[tuple[str, bytes, str, str, bytes]], path: pathlib.Path) -> list[int]:
    log = audit.Log.open(str(path))
    policy = audit.read(POLICY, title="policy")
    server = await client.start(audit=lambda clock: audit.Auditor(policy, log, clock=clock))
    await log.flush()
    path.write_bytes(b"")
    codes = []
    for method, body, media_type, name, header in several:
        collection = client.CLAIMS if method == "POST" else f"{client.CLAIMS}/c{name}"
        scope = server.scope(method, f"{collection}?fieldManager={name}&labelSelector={name}")
        scope["headers"] += [
            (b"content-type", media_type.encode("latin-1")),
            (b"user-agent", header),
            (b"accept", b"application/json;" + header),
            (b"audit-id", header),
            (b"x-forwarded-for", header),
        ]
        codes.append(await answer(server, scope, body))
    log.close()
    return codes


async def answer(server: client.Client, scope: dict[str, Any], body: bytes) -> int:
    sent: list[Any] = []
    inbox = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return inbox.pop(0) if inbox else await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    await server.app(scope, receive, send)
    return int(sent[0]["status"])


@settings(max_examples=20, deadline=None)
@given(some.lists(requests, min_size=10, max_size=20))
def test_no_bytes_make_the_server_fail_or_its_log_incomplete(
    several: list[tuple[str, bytes, str, str, bytes]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "audit.log"
        codes = asyncio.run(serve(several, path))
        events = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert not [code for code in codes if code >= 500]
    complete = [event["responseStatus"]["code"] for event in events if event["stage"] == "ResponseComplete"]
    assert complete == codes
