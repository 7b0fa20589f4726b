"""Serving certificates: an own one is renewed while it serves, one of another program is loaded when it changes."""

import asyncio
import contextlib
import datetime as dt
import pathlib
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Callable

from aiohttp import web
from cryptography import x509

from drachma.process import tlsserving
from drachma.server.access import certificates
from drachma.testing.manualclock import ManualClock

DAY = 24 * 3600.0


@contextlib.asynccontextmanager
async def _serving(files: certificates.Files, clock: ManualClock) -> AsyncIterator[int]:
    opened = socket.create_server(("127.0.0.1", 0))
    tls = tlsserving.context(files)
    serving = tlsserving.serve(web.Application(), opened, tls, files=files, clock=clock)
    task = asyncio.create_task(serving)
    try:
        yield opened.getsockname()[1]
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _served(port: int) -> x509.Certificate:
    text = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port), timeout=30)
    return x509.load_pem_x509_certificate(text.encode())


async def _until_served(
    port: int, clock: ManualClock, is_expected: Callable[[x509.Certificate], bool]
) -> x509.Certificate:
    """Let time pass until a thread has read the files, and return the certificate; fail if it is never served."""
    for _ in range(200):
        await clock.advance(60)
        if is_expected(served := await _served(port)):
            return served
    raise AssertionError("the certificate is not served")


async def test_an_own_certificate_is_renewed_before_it_expires(tmp_path: pathlib.Path) -> None:
    clock = ManualClock()
    files = certificates.ensure(tmp_path, hosts=["127.0.0.1", "own.example.com"], now=clock.utc())
    authority = files.authority.read_bytes()
    async with _serving(files, clock) as port:
        first = await _served(port)
        await clock.advance(300 * DAY)
        assert await _served(port) == first
        await clock.advance(36 * DAY)
        renewed = await _until_served(port, clock, lambda served: served != first)
    assert renewed.serial_number != first.serial_number
    assert renewed.not_valid_after_utc > clock.utc() + dt.timedelta(days=300)
    names = x509.SubjectAlternativeName
    hosts = renewed.extensions.get_extension_for_class(names).value
    assert hosts == first.extensions.get_extension_for_class(names).value
    assert files.authority.read_bytes() == authority, "clients go on to trust it"


async def test_a_certificate_of_another_program_is_loaded_and_never_written(tmp_path: pathlib.Path) -> None:
    clock = ManualClock()
    folder = tmp_path / "mounted"
    folder.mkdir()
    made = [certificates.ensure(tmp_path / name, hosts=["127.0.0.1"], now=clock.utc()) for name in ("one", "two")]

    def mount(source: certificates.Files) -> None:
        shutil.copy(source.certificate, folder / "tls.crt")
        shutil.copy(source.key, folder / "tls.key")

    mount(made[0])
    files = certificates.ensure(folder, hosts=["other.example.com"], now=clock.utc())
    async with _serving(files, clock) as port:
        mount(made[1])
        want = x509.load_pem_x509_certificate(made[1].certificate.read_bytes())
        await _until_served(port, clock, lambda served: served == want)
        await clock.advance(364 * DAY)
        assert await _served(port) == want
    assert sorted(each.name for each in folder.iterdir()) == ["tls.crt", "tls.key"]


async def test_a_pair_that_does_not_match_is_not_used(tmp_path: pathlib.Path) -> None:
    clock = ManualClock()
    files, other = (
        certificates.ensure(tmp_path / name, hosts=["127.0.0.1"], now=clock.utc()) for name in ("own", "other")
    )
    async with _serving(files, clock) as port:
        first = await _served(port)
        shutil.copy(other.certificate, files.certificate)
        for _ in range(5):
            await clock.advance(60)
        assert await _served(port) == first
