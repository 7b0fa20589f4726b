"""The webhook as an HTTPS server: ``POST /validate`` takes an AdmissionReview, ``/healthz`` answers probes.

The certificate is read from a folder, as a mounted Secret has it, and read again when it changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pathlib
import signal
import socket
import ssl
from typing import Final

import msgspec
import uvloop
from aiohttp import web

from drachma import errors
from drachma.driver import jsonlog
from drachma.driver.driver import Driver
from drachma.driver.webhook import reviews
from drachma.listening import statuspage, webserver
from drachma.runtime import clock

_log = logging.getLogger(__name__)

PATH: Final = "/validate"
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
_MOST_BYTES: Final = 8 * 1024 * 1024
"""Limit for a review, which has an object before and after a change."""

_RELOAD_SECONDS: Final = 60.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a webhook's process."""

    certificates: pathlib.Path
    port: int = 8443
    log_level: str = "info"
    logs_json: bool = False


def run(driver: type[Driver], options: Options) -> None:
    """Serve until SIGTERM.

    Raises:
        errors.DriverError: the port is taken, or the certificate cannot be read.
    """
    jsonlog.set_up(level=options.log_level, is_json=options.logs_json)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run_until_stopped(driver, options))


async def _run_until_stopped(driver: type[Driver], options: Options) -> None:
    task = asyncio.current_task()
    assert task is not None, "runs as a task"
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        opened = statuspage.listen_everywhere(options.port)
    except errors.InvalidValueError as error:
        raise errors.DriverError(str(error)) from error
    # Asked to stop: that is no failure.
    with contextlib.suppress(asyncio.CancelledError):
        await serve(driver, opened, certificates=options.certificates, clock=clock.SystemClock())


async def serve(driver: type[Driver], opened: socket.socket, *, certificates: pathlib.Path, clock: clock.Clock) -> None:
    """Serve on an open socket until cancelled.

    Raises:
        errors.DriverError: the certificate cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    signature = _load(context, certificates)
    async with webserver.serving(_application(driver), opened, context=context):
        _log.info("driver %s: its webhook serves %s on port %d", driver.name, PATH, opened.getsockname()[1])
        while True:
            await clock.sleep(_RELOAD_SECONDS)
            if _signature(certificates) == signature:
                continue
            try:
                signature = _load(context, certificates)
                _log.info("certificate in %s: read again", certificates)
            except errors.DriverError as error:
                _log.warning("%s; the old one stays", error)


def _application(driver: type[Driver]) -> web.Application:
    async def validate(request: web.Request) -> web.Response:
        try:
            answer = reviews.answer(driver, msgspec.json.decode(await request.read()))
        except (msgspec.DecodeError, UnicodeDecodeError, errors.DecodeError) as error:
            return web.Response(status=400, text=f"{error}\n")
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    async def live(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    application = web.Application(client_max_size=_MOST_BYTES)
    application.add_routes([web.post(PATH, validate), web.get("/healthz", live), web.get("/readyz", live)])
    return application


def _signature(folder: pathlib.Path) -> tuple[int, ...]:
    try:
        states = [(folder / name).stat() for name in (CERTIFICATE, KEY)]
    except OSError:
        return ()
    return tuple(number for state in states for number in (state.st_ino, state.st_mtime_ns))


def _load(context: ssl.SSLContext, folder: pathlib.Path) -> tuple[int, ...]:
    signature = _signature(folder)
    try:
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    except (OSError, ssl.SSLError) as error:
        raise errors.DriverError(f"certificate in {folder}: {error.strerror or error}") from error
    return signature
