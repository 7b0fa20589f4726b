"""Requests over HTTP: what is sent, what is repeated and what is not, and how failures are told."""

import gc
import pathlib
import random
import socket
import stat

import pytest

from drachma import errors
from drachma.client import access, backoff, transport
from tests.unit.client.clocks import FakeClock
from tests.unit.client.fakeserver import Answer, FakeServer, refused, serving

GOOD = Answer(body={"good": True})
BROKEN = Answer(parts=[b'{"go'], headers={"Content-Length": "100"}, breaks_off=True)
RETRIES = backoff.Retries(attempts=3, backoff=backoff.Backoff(initial=1.0, factor=2.0, maximum=8.0, jitter=0.0))


def make(server: FakeServer, clock: FakeClock, **more: object) -> transport.Transport:
    reached = access.Access(server=server.url, source="test", **more)  # type: ignore[arg-type]
    return transport.Transport(reached, clock=clock, retries=RETRIES, rng=random.Random(1), timeout_seconds=30)


async def test_each_attempt_is_observed() -> None:
    observations: list[tuple[str, str, float]] = []
    async with serving(refused(503), GOOD) as server:
        sender = transport.Transport(
            access.Access(server=server.url, source="test"),
            clock=FakeClock(),
            retries=RETRIES,
            rng=random.Random(1),
            timeout_seconds=30,
            observe=lambda method, code, seconds: observations.append((method, code, seconds)),
        )
        await sender.send(request())
    with pytest.raises(errors.UnreachableError):
        await sender.send(request())
    await sender.close()
    assert observations == [("GET", "503", 0), ("GET", "200", 0), *[("GET", "<error>", 0)] * 3]


def request(*, is_idempotent: bool = True, waits_when_throttled: bool = True) -> transport.Request:
    return transport.Request(
        method="GET" if is_idempotent else "POST",
        path="/api/v1/pods",
        body=None if is_idempotent else b"{}",
        is_idempotent=is_idempotent,
        waits_when_throttled=waits_when_throttled,
    )


@pytest.mark.parametrize(
    ("answers", "is_idempotent", "want_pauses"),
    [
        pytest.param([GOOD], True, [], id="at-once"),
        pytest.param([refused(500), refused(503), GOOD], True, [1.0, 2.0], id="faults"),
        pytest.param([BROKEN, GOOD], True, [1.0], id="broken-off"),
        pytest.param([refused(429), GOOD], False, [1.0], id="throttled-write"),
        pytest.param([refused(429, headers={"Retry-After": "7"}), GOOD], False, [7.0], id="throttled-with-header"),
        pytest.param([refused(429, retryAfterSeconds=5), GOOD], False, [5.0], id="throttled-with-detail"),
        pytest.param([refused(503, headers={"Retry-After": "2"}), GOOD], False, [2.0], id="unavailable-write"),
        pytest.param([Answer(code=502, body="<html>"), GOOD], True, [1.0], id="proxy-without-server"),
    ],
)
async def test_repeated(answers: list[Answer], is_idempotent: bool, want_pauses: list[float]) -> None:
    clock = FakeClock()
    async with serving(*answers) as server:
        sender = make(server, clock)
        assert await sender.send(request(is_idempotent=is_idempotent)) == b'{"good":true}'
        await sender.close()
    assert clock.pauses == want_pauses
    assert len(server.asked) == len(answers)


@pytest.mark.parametrize(
    ("answers", "is_idempotent", "want_error", "want_asked"),
    [
        pytest.param([refused(404, "NotFound")], True, errors.ObjectNotFoundError, 1, id="not-found"),
        pytest.param([refused(409, "Conflict")], False, errors.ObjectConflictError, 1, id="conflict"),
        pytest.param([refused(500)], False, errors.ServerFaultError, 1, id="fault-in-a-write"),
        pytest.param([refused(500)] * 3, True, errors.ServerFaultError, 3, id="faults-to-the-end"),
        pytest.param([BROKEN], False, errors.UnreachableError, 1, id="write-broken-off"),
        pytest.param([BROKEN] * 3, True, errors.UnreachableError, 3, id="broken-off-to-the-end"),
        pytest.param([refused(429, retryAfterSeconds=61)], True, errors.ThrottledError, 1, id="too-long-to-wait"),
        pytest.param([refused(401, "Unauthorized")], True, errors.UnauthorizedError, 1, id="nothing-to-renew"),
        pytest.param([Answer(code=302, body="moved")], True, errors.RefusedError, 1, id="redirect"),
    ],
)
async def test_told_to_the_caller(
    answers: list[Answer], is_idempotent: bool, want_error: type[Exception], want_asked: int
) -> None:
    async with serving(*answers) as server:
        sender = make(server, FakeClock())
        with pytest.raises(want_error):
            await sender.send(request(is_idempotent=is_idempotent))
        await sender.close()
    assert len(server.asked) == want_asked


async def test_evictions_are_not_repeated_when_throttled() -> None:
    async with serving(refused(429, "TooManyRequests", retryAfterSeconds=10)) as server:
        sender = make(server, FakeClock())
        with pytest.raises(errors.ThrottledError):
            await sender.send(request(is_idempotent=False, waits_when_throttled=False))
        await sender.close()
    assert len(server.asked) == 1


async def test_no_connection_is_tried_again_even_for_writes() -> None:
    clock = FakeClock()
    async with serving() as server:
        pass
    sender = make(server, clock)
    with pytest.raises(errors.UnreachableError, match=f"POST {server.url}/api/v1/pods: Cannot connect"):
        await sender.send(request(is_idempotent=False))
    await sender.close()
    assert clock.pauses == [1.0, 2.0]


async def test_a_closed_client_says_so() -> None:
    async with serving(GOOD) as server:
        sender = make(server, FakeClock())
        await sender.send(request())
        await sender.close()
        with pytest.raises(errors.UnreachableError, match="the client is closed"):
            await sender.send(request())


async def test_headers() -> None:
    async with serving(GOOD) as server:
        someone = access.Impersonation(user="jane", uid="7", groups=("a", "b"), extra={"x/y": ("z",)})
        sender = make(server, FakeClock(), token="secret", impersonation=someone)
        await sender.send(request())
        await sender.close()
    headers = server.asked[0].headers
    assert headers["Authorization"] == "Bearer secret"
    assert headers["User-Agent"].startswith("drachma/")
    assert (headers["Impersonate-User"], headers["Impersonate-Uid"]) == ("jane", "7")
    assert headers.getall("Impersonate-Group") == ["a", "b"]  # type: ignore[attr-defined]
    assert headers["Impersonate-Extra-x%2Fy"] == "z"


async def test_a_password_is_sent_as_basic_authorization() -> None:
    async with serving(GOOD) as server:
        sender = make(server, FakeClock(), username="me", password="pass")
        await sender.send(request())
        await sender.close()
    assert server.asked[0].headers["Authorization"] == "Basic bWU6cGFzcw=="


async def test_a_token_file_is_read_again(tmp_path: pathlib.Path) -> None:
    path, clock = tmp_path / "token", FakeClock()
    path.write_text("one\n")
    async with serving(GOOD, GOOD, GOOD, refused(401, "Unauthorized"), GOOD) as server:
        sender = make(server, clock, token_file=path)
        await sender.send(request())
        path.write_text("two\n")
        await sender.send(request())
        clock.advance(61)
        await sender.send(request())
        path.write_text("three\n")
        await sender.send(request())
        await sender.close()
    sent = [request.headers["Authorization"] for request in server.asked]
    # The last is the answer to a refusal: the file was read before its minute was over.
    assert sent == ["Bearer one", "Bearer one", "Bearer two", "Bearer two", "Bearer three"]


@pytest.mark.parametrize(
    ("content", "want_message"),
    [
        pytest.param(None, "token: cannot be read: No such file", id="absent"),
        pytest.param(" \n", "token: is empty", id="empty"),
    ],
)
async def test_a_token_file_that_cannot_be_used(tmp_path: pathlib.Path, content: str | None, want_message: str) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content)
    async with serving() as server:
        sender = make(server, FakeClock(), token_file=tmp_path / "token")
        with pytest.raises(errors.AccessError, match=want_message):
            await sender.send(request())
        await sender.close()


async def test_a_stream_is_never_repeated() -> None:
    async with serving(refused(503)) as server:
        sender = make(server, FakeClock())
        with pytest.raises(errors.ServerFaultError):
            async with sender.stream(request(), idle_seconds=30):
                pass
        await sender.close()
    assert len(server.asked) == 1


def script(path: pathlib.Path, text: str) -> access.Plugin:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return access.Plugin(command=str(path), api_version="client.authentication.k8s.io/v1")


def credential(status: str) -> str:
    head = '"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"'
    return f"cat <<'END'\n{{{head}, \"status\": {status}}}\nEND\n"


async def test_a_plugin_is_run_when_needed(tmp_path: pathlib.Path) -> None:
    clock = FakeClock()
    count = f"echo x >> {tmp_path}/runs\nn=$(wc -l < {tmp_path}/runs)\n"
    answer = (
        'echo "{\\"apiVersion\\": \\"client.authentication.k8s.io/v1\\", \\"kind\\": \\"ExecCredential\\", '
        '\\"status\\": {\\"token\\": \\"token-$((n))\\", \\"expirationTimestamp\\": \\"2026-01-01T01:00:00Z\\"}}"\n'
    )
    plugin = script(tmp_path / "login", count + answer)
    async with serving(GOOD, GOOD, refused(401, "Unauthorized"), GOOD, GOOD) as server:
        sender = make(server, clock, plugin=plugin)
        for _ in range(3):
            await sender.send(request())
        clock.advance(2 * 3600)
        await sender.send(request())
        await sender.close()
    sent = [request.headers["Authorization"].removeprefix("Bearer token-") for request in server.asked]
    # Run at first, after the refusal, and once what it gave has expired.
    assert sent == ["1", "1", "1", "2", "3"]


async def test_a_plugin_is_told_what_it_may_know(tmp_path: pathlib.Path) -> None:
    plugin = script(
        tmp_path / "login", f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/seen\n' + credential('{"token":"t"}')
    )
    async with serving(GOOD) as server:
        wanting = access.Plugin(command=plugin.command, api_version=plugin.api_version, wants_cluster=True)
        sender = make(server, FakeClock(), plugin=wanting)
        await sender.send(request())
        await sender.close()
    exec_info = (tmp_path / "seen").read_text()
    assert '"kind":"ExecCredential"' in exec_info
    assert f'"cluster":{{"server":"{server.url}"}}' in exec_info


@pytest.mark.parametrize(
    ("text", "want_message"),
    [
        pytest.param("echo no such user >&2; exit 3", "ended with exit code 3: no such user", id="fails"),
        pytest.param("echo hello", "did not print an ExecCredential", id="not-json"),
        pytest.param('echo \'{"kind": "Pod"}\'', "found Pod of no apiVersion", id="another-kind"),
        pytest.param(credential("{}"), "has neither token nor clientCertificateData", id="empty"),
        pytest.param(credential('{"clientCertificateData": "x"}'), "must be set together", id="certificate-alone"),
    ],
)
async def test_a_plugin_that_fails_is_named(tmp_path: pathlib.Path, text: str, want_message: str) -> None:
    async with serving() as server:
        sender = make(server, FakeClock(), plugin=script(tmp_path / "login", text))
        with pytest.raises(errors.AccessError) as caught:
            await sender.send(request())
        await sender.close()
    assert str(caught.value).startswith(f"test: credential plugin {tmp_path / 'login'}: ")
    assert want_message in str(caught.value)


async def test_a_plugin_that_is_not_installed() -> None:
    plugin = access.Plugin(command="no-such-login", api_version="v", install_hint="get it from your cloud")
    async with serving() as server:
        sender = make(server, FakeClock(), plugin=plugin)
        with pytest.raises(
            errors.AccessError, match="cannot be run: No such file or directory; get it from your cloud"
        ):
            await sender.send(request())
        await sender.close()


async def test_a_silent_connection_notices_that_the_other_machine_has_failed() -> None:
    """A watch sends nothing, so only the system's own questions show that there is no answer any more."""
    async with serving(Answer(parts=[b"1", b"2"])) as server:
        sender = make(server, FakeClock())
        async with sender.stream(request(), idle_seconds=30) as content:
            (opened,) = _sockets_to(int(server.url.rpartition(":")[2]))
            assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            seconds = [
                opened.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            ]
            assert seconds[0] + seconds[1] * seconds[2] <= 60
            await content.read()
        await sender.close()


def _sockets_to(port: int) -> list[socket.socket]:
    """Return the sockets of this process that are connected to a port."""
    sockets = [each for each in gc.get_objects() if isinstance(each, socket.socket) and each.fileno() >= 0]
    return [each for each in sockets if each.family == socket.AF_INET and _peer_port(each) == port]


def _peer_port(opened: socket.socket) -> int:
    try:
        return int(opened.getpeername()[1])
    except OSError:
        return 0
