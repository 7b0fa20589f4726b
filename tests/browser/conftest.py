"""One control plane with its dashboard, and one Chromium, for all browser tests of a run.

Playwright runs on an event loop in a thread of its own, so that it does not meddle with the loops of other tests. The
tests are skipped where there is no Chromium; with $CI set they install it, and fail if that does not work.
"""

import asyncio
import concurrent.futures
import contextlib
import importlib.util
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Final, TypeVar

import pytest
from playwright import async_api

from drachma.client import http
from drachma.runtime import clock
from tests import patience
from tests.browser import world
from tests.scenarios import processes

ResultT = TypeVar("ResultT")

FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PROJECT: Final = pathlib.Path(__file__).resolve().parents[2]
SECONDS: Final = patience.SECONDS


def find_chromium() -> pathlib.Path:
    """Return the Chromium to test with; skips the test, or fails it where $CI is set, if there is none."""
    spec = importlib.util.spec_from_file_location("install_chromium", PROJECT / "scripts" / "install_chromium.py")
    assert spec is not None, "the script exists"
    assert spec.loader is not None, "a script is loaded from its file"
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    program: pathlib.Path | None = script.find()
    if program is not None:
        return program
    if not os.environ.get("CI"):
        pytest.skip("no Chromium: python scripts/install_chromium.py installs it; in CI the tests do")
    try:
        installed: pathlib.Path = script.install()
    except OSError as error:
        pytest.fail(f"CI needs the browser tests: {error}")
    return installed


class LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop: Final = asyncio.new_event_loop()
        self._thread: Final = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, ResultT], *, seconds: float = SECONDS) -> ResultT:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(seconds)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()


class Stage:
    """The dashboard, and the browser in front of it. Complaints are errors of scripts and breaches of the policy."""

    def __init__(
        self,
        thread: LoopThread,
        browser: async_api.Browser,
        address: str,
        *,
        client: http.HttpClient,
        kubeconfig: pathlib.Path,
    ) -> None:
        self._kubeconfig: Final = kubeconfig
        self._thread: Final = thread
        self._browser: Final = browser
        self.address: Final = address
        self.url: Final = address.partition("/?")[0]
        self.client: Final = client
        self.complaints: list[str] = []

    def run(self, coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run a check on the browser's loop; fails on complaints of the browser."""
        self.complaints.clear()
        result = self._thread.run(coroutine)
        assert self.complaints == []
        return result

    @contextlib.asynccontextmanager
    async def page(self, *, signs_in: bool = True, width: int = 1280, **options: Any) -> Any:
        """Open a page of a browser without cookies, signed in as the admin."""
        viewport = async_api.ViewportSize(width=width, height=860)
        context = await self._browser.new_context(viewport=viewport, **options)
        context.set_default_timeout(30_000)
        try:
            page = await context.new_page()
            page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
            page.on("console", self._hear)
            if signs_in:
                await page.goto(self.address)
            yield page
        finally:
            await context.close()

    def free_port(self) -> int:
        """Return a port that was free a moment ago."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port: int = listener.getsockname()[1]
            return port

    @contextlib.asynccontextmanager
    async def second_dashboard(self, port: int) -> AsyncIterator[str]:
        """Run ``drachma dashboard`` in front of the same cluster, on a port. Yield its URL."""
        command = (*processes.DRACHMA, "dashboard", "--kubeconfig", str(self._kubeconfig), "--sign-in")
        url = f"http://127.0.0.1:{port}"
        process = await asyncio.create_subprocess_exec(
            *command, "--listen", f"127.0.0.1:{port}", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        assert process.stdout is not None, "the output is piped"
        try:
            while line := await process.stdout.readline():
                if line.startswith(b"dashboard: "):
                    break
            yield url
        finally:
            process.terminate()
            await process.wait()

    def _hear(self, message: async_api.ConsoleMessage) -> None:
        # A refused page is an error to the browser; the tests that ask for one check it themselves.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")


@contextlib.contextmanager
def control_plane(folder: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """Run ``drachma up``. Yield the dashboard's address, and the admin's kubeconfig."""
    kubeconfig = folder / "kubeconfig"
    options = ("--memory", "--nodes", "6", "--queueing", "--listen", "127.0.0.1:0", "--kubeconfig-out", str(kubeconfig))
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*processes.DRACHMA, "up", *options], stdout=log, stderr=subprocess.STDOUT)

        def look() -> str:
            assert process.poll() is None, os.pread(log.fileno(), 1_000_000, 0).decode()
            found = re.search(r"^ *dashboard +(\S+)$", os.pread(log.fileno(), 1_000_000, 0).decode(), re.MULTILINE)
            return found[1] if found else ""

        try:
            yield patience.until(look, what="drachma up says the dashboard's address"), kubeconfig
        finally:
            process.terminate()
            process.wait(patience.SECONDS)


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    program = find_chromium()
    thread = LoopThread()
    with control_plane(tmp_path_factory.mktemp("browser")) as (address, kubeconfig):

        async def start() -> tuple[async_api.Playwright, async_api.Browser, http.HttpClient]:
            client = http.HttpClient(http.find_access(kubeconfig), clock=clock.SystemClock())
            await world.create_all(client, [*world.documents(), *world.limited_user()])
            async_api.expect.set_options(timeout=30_000)
            playwright = await async_api.async_playwright().start()
            browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
            return playwright, browser, client

        playwright, browser, client = thread.run(start(), seconds=patience.SECONDS)
        try:
            yield Stage(thread, browser, address, client=client, kubeconfig=kubeconfig)
        finally:

            async def stop() -> None:
                await browser.close()
                await playwright.stop()
                await client.close()

            thread.run(stop())
            thread.stop()
