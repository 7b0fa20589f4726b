"""Plugin watcher: it finds drivers by the sockets in a directory, and notifies each of its registration.

The directory is scanned once a second. A new socket is asked for its plugin. A socket that is gone or was replaced is
deregistered. A registration that fails is tried again after pauses that grow.
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
from drachma.runtime.clock import Clock

_log = logging.getLogger(__name__)

PLUGIN_TYPE: Final = "DRAPlugin"

_SCAN_SECONDS: Final = 1.0
_INFO_SECONDS: Final = 1.0
_NOTIFY_SECONDS: Final = 5.0
_FIRST_DELAY: Final = 0.5
_LONGEST_DELAY: Final = 122.0
_MODE: Final = 0o750


class PluginHandler(Protocol):
    """Registry of drivers: :class:`drachma.node.drivers.instances.DriverInstances`. Raises NodeError to refuse one."""

    def validate(self, driver: str, endpoint: str, advertised: Sequence[str]) -> None: ...
    def register(self, driver: str, endpoint: str, advertised: Sequence[str]) -> object: ...
    async def deregister(self, driver: str, endpoint: str) -> None: ...


class _Socket(NamedTuple):
    """A socket file. Another file at the same path is not equal to it."""

    path: pathlib.Path
    inode: int
    modified_ns: int


class _Registered(NamedTuple):
    socket: _Socket
    driver: str
    endpoint: str


class _Failure(NamedTuple):
    socket: _Socket
    delay: float
    retry_at: float


class PluginWatcher:
    """Watches the directory of registration sockets of one agent."""

    def __init__(self, directory: pathlib.Path, handler: PluginHandler, *, clock: Clock) -> None:
        self._directory = directory
        self._handler = handler
        self._clock = clock
        self._registered: Final[dict[pathlib.Path, _Registered]] = {}
        self._failures: Final[dict[pathlib.Path, _Failure]] = {}
        self._attempts: Final[dict[pathlib.Path, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Watch the directory until cancelled."""
        self._directory.mkdir(mode=_MODE, parents=True, exist_ok=True)
        try:
            while True:
                await self.scan()
                await self._clock.sleep(_SCAN_SECONDS)
        finally:
            for attempt in self._attempts.values():
                attempt.cancel()
            await asyncio.gather(*self._attempts.values(), return_exceptions=True)

    async def scan(self) -> None:
        """Scan the directory once, and start the registrations that are due; see :attr:`attempts`."""
        sockets = {socket.path: socket for socket in _sockets(self._directory)}
        for path, registered in list(self._registered.items()):
            if sockets.get(path) != registered.socket:
                del self._registered[path]
                await self._handler.deregister(registered.driver, registered.endpoint)
        for path, failure in list(self._failures.items()):
            if sockets.get(path) != failure.socket:
                del self._failures[path]
        for path, socket in sockets.items():
            is_due = path not in self._failures or self._failures[path].retry_at <= self._clock.monotonic()
            if path not in self._registered and path not in self._attempts and is_due:
                self._attempts[path] = asyncio.create_task(self._attempt(socket), name=f"registration of {path}")

    @property
    def attempts(self) -> Sequence[asyncio.Task[None]]:
        """Registrations under way."""
        return tuple(self._attempts.values())

    async def _attempt(self, socket: _Socket) -> None:
        path = socket.path
        try:
            self._registered[path] = await self._register(socket)
            self._failures.pop(path, None)
        except (errors.NodeError, grpc.aio.AioRpcError) as error:
            text = services.problem(error) if isinstance(error, grpc.aio.AioRpcError) else str(error)
            _log.warning("driver behind %s is not registered, will try again: %s", path, text)
            failure = self._failures.get(path)
            delay = min(2 * failure.delay, _LONGEST_DELAY) if failure is not None else _FIRST_DELAY
            self._failures[path] = _Failure(socket, delay, self._clock.monotonic() + delay)
        finally:
            del self._attempts[path]

    async def _register(self, socket: _Socket) -> _Registered:
        """Register the plugin behind a socket, and notify it of success or failure."""
        async with services.channel(socket.path) as channel:
            info = await services.call(
                channel, services.REGISTRATION, "GetInfo", messages.REGISTRATION.InfoRequest(), timeout=_INFO_SECONDS
            )
            endpoint = info.endpoint or str(socket.path)
            advertised = list(info.supported_versions)
            try:
                self._validate_and_register(info, endpoint, advertised, socket=socket)
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

    def _validate_and_register(self, info: Any, endpoint: str, advertised: Sequence[str], *, socket: _Socket) -> None:
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
    """Return the sockets below a directory that are not hidden."""
    sockets: list[_Socket] = []
    for path in sorted(directory.rglob("*")):
        if any(part.startswith(".") for part in path.relative_to(directory).parts):
            continue
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISSOCK(status.st_mode):
            sockets.append(_Socket(path, status.st_ino, status.st_mtime_ns))
    return sockets
