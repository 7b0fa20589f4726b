"""A server process from start to end: TLS, credentials, restart, a second server, shutdown."""

import http.client
import json
import pathlib
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from drachma.server.access import certificates
from tests import patience
from tests.scenarios import processes, wire
from tests.unit.server import client

CLAIMS = client.CLAIMS


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[processes.Process]:
    with processes.running(tmp_path / "data") as started:
        yield started


def test_the_server_is_who_it_says_and_asks_who_you_are(server: processes.Process, tmp_path: pathlib.Path) -> None:
    with wire.Wire(server) as admin:
        assert admin.call("POST", CLAIMS, client.claim()).code == 201
    with wire.Wire(server, token="wrong") as stranger:
        assert stranger.call("GET", CLAIMS).code == 401
    files = certificates.ensure(server.folder / "pki", hosts=[], now=datetime.now(UTC))
    for groups, code in ((["system:masters"], 200), (["ops"], 403)):
        certificate, key = certificates.make_client(files, user="ann", groups=groups, now=datetime.now(UTC))
        paths = (tmp_path / "ann.crt", tmp_path / "ann.key")
        for path, data in zip(paths, (certificate, key), strict=True):
            path.write_bytes(data)
        with wire.Wire(server, token="", certificate=(str(paths[0]), str(paths[1]))) as ann:
            assert ann.call("GET", CLAIMS).code == code
    with wire.Wire(server, token="") as nobody:
        assert nobody.call("GET", "/healthz").code == 200
        assert nobody.call("GET", CLAIMS).code == 403


def test_a_restart_keeps_everything(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "data"
    with processes.running(folder) as first, wire.Wire(first) as admin:
        made = admin.call("POST", CLAIMS, client.claim()).body
        token, authority = first.token, first.authority.read_bytes()
        assert first.stop() == 0
    with processes.running(folder) as second, wire.Wire(second) as admin:
        assert admin.call("GET", f"{CLAIMS}/c").body == made
        assert (second.token, second.authority.read_bytes()) == (token, authority)
        later = admin.call("POST", CLAIMS, client.claim("d")).body
        assert int(later["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
        with admin.open("GET", f"{CLAIMS}?watch=1&resourceVersion={made['metadata']['resourceVersion']}") as stream:
            assert json.loads(stream.readline())["object"] == later


def test_a_second_server_on_the_same_data_refuses_to_start(server: processes.Process) -> None:
    with pytest.raises(RuntimeError, match="in use by another drachma"):
        processes.start(server.folder)
    with wire.Wire(server) as admin:
        assert admin.call("GET", CLAIMS).code == 200


def test_a_port_that_is_taken_is_named(server: processes.Process, tmp_path: pathlib.Path) -> None:
    address = server.url.removeprefix("https://")
    with pytest.raises(RuntimeError, match=f"address {address}: cannot listen: Address already in use"):
        processes.start(tmp_path / "other", listen=address)


def test_shutdown_ends_watches_and_finishes_writes(server: processes.Process) -> None:
    acknowledged: list[str] = []

    def write() -> None:
        with wire.Wire(server) as admin:
            for number in range(100_000):
                try:
                    answer = admin.call("POST", CLAIMS, client.claim(f"w{number}"))
                except (OSError, http.client.HTTPException):
                    return
                if answer.code != 201:
                    return
                acknowledged.append(answer.body["metadata"]["name"])

    with wire.Wire(server) as watcher:
        stream = watcher.open("GET", f"{CLAIMS}?watch=1")
        writer = threading.Thread(target=write)
        writer.start()
        first = [json.loads(stream.readline())["object"]["metadata"]["name"] for _ in range(20)]
        assert server.stop() == 0
        writer.join(patience.SECONDS)
        rest = [json.loads(line)["object"]["metadata"]["name"] for line in stream.read().splitlines()]
    assert [*first, *rest] == [f"w{number}" for number in range(20 + len(rest))]
    with processes.running(server.folder) as again, wire.Wire(again) as admin:
        stored = {item["metadata"]["name"] for item in admin.call("GET", CLAIMS).body["items"]}
    assert set(acknowledged) <= stored


def test_broken_clients_do_no_harm(server: processes.Process) -> None:
    host, port = server.url.removeprefix("https://").split(":")
    for data in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello"):
        with socket.create_connection((host, int(port)), timeout=60) as plain:
            plain.sendall(data)
    with wire.Wire(server) as admin:
        for request in (
            b"NONSENSE\r\n\r\n",
            b"GET \xff HTTP/1.1\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        ):
            raw = wire.Wire(server)
            raw.connection.connect()
            raw.connection.sock.sendall(request)
            assert raw.connection.sock.recv(12) in (b"HTTP/1.1 400", b"")
            raw.close()
        assert admin.call("GET", CLAIMS).code == 200
    assert server.process.poll() is None
