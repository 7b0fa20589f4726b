"""Finding drivers by the sockets in a directory, and telling each how its registration went.

The directory is looked through once a second. A socket that is new is asked what is behind it; one that is gone, or is
another one now, is no longer registered. What fails is tried again, less and less often.
"""

from __future__ import annotations

import asyncio
import logging
import pathlib
import stat
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import grpc
import grpc.aio

from drachma import errors
from drachma.nodewire.rpc import messages, services
from drachma.runtime import clock

_log = logging.getLogger(__name__)

PLUGIN_TYPE: Final = "DRAPlugin"

_LOOK_SECONDS: Final = 1.0
_INFO_SECONDS: Final = 1.0
_NOTIFY_SECONDS: Final = 5.0
_FIRST_DELAY: Final = 0.5
_LONGEST_DELAY: Final = 122.0
_MODE: Final = 0o750


class Handler(Protocol):
    """Who takes drivers in: :class:`drachma.node.drivers.Drivers`. What it refuses is a NodeError."""

    def validate(self, driver: str, endpoint: str, advertised: Sequence[str]) -> None: ...
    def register(self, driver: str, endpoint: str, advertised: Sequence[str]) -> object: ...
    async def deregister(self, driver: str, endpoint: str) -> None: ...


class _Socket(NamedTuple):
    """A socket file; another one at the same path is not equal to it."""

    path: pathlib.Path
    inode: int
    made: int


class _Registered(NamedTuple):
    socket: _Socket
    driver: str
    endpoint: str


class _Failure(NamedTuple):
    socket: _Socket
    delay: float
    due: float


class Registration:
    """The directory of registration sockets of one agent."""

    def __init__(self, directory: pathlib.Path, handler: Handler, *, time: clock.Clock) -> None:
        self._directory = directory
        self._handler = handler
        self._clock = time
        self._registered: Final[dict[pathlib.Path, _Registered]] = {}
        self._failures: Final[dict[pathlib.Path, _Failure]] = {}
        self._attempts: Final[dict[pathlib.Path, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Looks after the directory until it is cancelled."""
        self._directory.mkdir(mode=_MODE, parents=True, exist_ok=True)
        try:
            while True:
                await self.look()
                await self._clock.sleep(_LOOK_SECONDS)
        finally:
            for attempt in self._attempts.values():
                attempt.cancel()
            await asyncio.gather(*self._attempts.values(), return_exceptions=True)

    async def look(self) -> None:
        """Looks through the directory once, and begins what is to be done; :meth:`attempts` are then under way."""
        sockets = {socket.path: socket for socket in _sockets(self._directory)}
        for path, registered in list(self._registered.items()):
            if sockets.get(path) != registered.socket:
                del self._registered[path]
                await self._handler.deregister(registered.driver, registered.endpoint)
        for path, failure in list(self._failures.items()):
            if sockets.get(path) != failure.socket:
                del self._failures[path]
        for path, socket in sockets.items():
            is_due = path not in self._failures or self._failures[path].due <= self._clock.monotonic()
            if path not in self._registered and path not in self._attempts and is_due:
                self._attempts[path] = asyncio.create_task(self._attempt(socket), name=f"registration of {path}")

    @property
    def attempts(self) -> Sequence[asyncio.Task[None]]:
        """The registrations that are under way."""
        return tuple(self._attempts.values())

    async def _attempt(self, socket: _Socket) -> None:
        path = socket.path
        try:
            self._registered[path] = await self._register(socket)
            self._failures.pop(path, None)
        except (errors.NodeError, grpc.aio.AioRpcError) as error:
            text = services.problem(error) if isinstance(error, grpc.aio.AioRpcError) else str(error)
            _log.warning("driver behind %s is not registered, will try again: %s", path, text)
            before = self._failures.get(path)
            delay = min(2 * before.delay, _LONGEST_DELAY) if before is not None else _FIRST_DELAY
            self._failures[path] = _Failure(socket, delay, self._clock.monotonic() + delay)
        finally:
            del self._attempts[path]

    async def _register(self, socket: _Socket) -> _Registered:
        """Registers what is behind a socket, and tells it; it is told too where it cannot be."""
        async with services.channel(socket.path) as channel:
            info = await services.call(
                channel, services.REGISTRATION, "GetInfo", messages.REGISTRATION.InfoRequest(), timeout=_INFO_SECONDS
            )
            endpoint = info.endpoint or str(socket.path)
            advertised = list(info.supported_versions)
            try:
                self._take_in(info, endpoint, advertised, socket=socket)
            except errors.NodeError as error:
                text = f"RegisterPlugin error -- {error}"
                await _notify(channel, plugin_registered=False, error=text)
                raise errors.NodeError(text) from None
            try:
                await _notify(channel, plugin_registered=True)
            except BaseException:
                await self._handler.deregister(info.name, endpoint)
                raise
        return _Registered(socket, info.name, endpoint)

    def _take_in(self, info: Any, endpoint: str, advertised: Sequence[str], *, socket: _Socket) -> None:
        if info.type != PLUGIN_TYPE:
            raise errors.NodeError(f"no handler registered for plugin type: {info.type} at socket {socket.path}")
        try:
            self._handler.validate(info.name, endpoint, advertised)
        except errors.NodeError as error:
            raise errors.NodeError(f"plugin validation failed with err: {error}") from None
        try:
            self._handler.register(info.name, endpoint, advertised)
        except errors.NodeError as error:
            raise errors.NodeError(f"plugin registration failed with err: {error}") from None


async def _notify(channel: grpc.aio.Channel, **status: Any) -> None:
    message = messages.REGISTRATION.RegistrationStatus(**status)
    await services.call(channel, services.REGISTRATION, "NotifyRegistrationStatus", message, timeout=_NOTIFY_SECONDS)


def _sockets(directory: pathlib.Path) -> list[_Socket]:
    """The sockets below a directory that are not hidden."""
    sockets: list[_Socket] = []
    for path in sorted(directory.rglob("*")):
        if any(part.startswith(".") for part in path.relative_to(directory).parts):
            continue
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISSOCK(found.st_mode):
            sockets.append(_Socket(path, found.st_ino, found.st_mtime_ns))
    return sockets
