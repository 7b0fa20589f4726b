"""The grid of devices of a cluster, printed once or drawn again on a terminal whenever it changes."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import re
import shutil
import sys
from collections.abc import Iterator
from typing import Final

import typer

from drachma.api import resourceclaim, resourceslice
from drachma.cli import terminal
from drachma.cli.inventory import devicegrid
from drachma.cli.inventory.cluster import Cluster
from drachma.client import http
from drachma.runtime import Informers, clock, informer

_PAUSE_SECONDS: Final = 0.3
"""Time to gather changes before the grid is drawn again."""
_HUGE: Final = 1_000_000
_OPEN_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
_CLOSE_SCREEN: Final = "\x1b[?25h\x1b[?1049l"
_CLEAR: Final = "\x1b[H\x1b[J"
_USED: Final = re.compile(f"[{devicegrid.ALLOCATED}{devicegrid.SHARED}░▒▓█]+")
_BAD: Final = re.compile(f"[{devicegrid.TAINTED}{devicegrid.UNPUBLISHED}]+")


def show(kubeconfig: pathlib.Path | None, context: str, *, driver: str, once: bool) -> None:
    """Draw the grid until Ctrl-C, or print it once if standard output is no terminal."""
    is_live = sys.stdout.isatty() and not once
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(kubeconfig, context, driver=driver, is_live=is_live))


async def _run(kubeconfig: pathlib.Path | None, context: str, *, driver: str, is_live: bool) -> None:
    access = http.find_access(kubeconfig, context=context)
    changed = asyncio.Event()
    async with (
        http.HttpClient(access, clock=clock.SystemClock(), manager="drachma-top") as client,
        Informers(client) as informers,
    ):
        slices = informers.of(resourceslice.ResourceSlice)
        claims = informers.of(resourceclaim.ResourceClaim)
        for each in (slices, claims):
            each.add_handler(
                informer.Handler(
                    added=lambda _: changed.set(), updated=lambda *_: changed.set(), deleted=lambda _: changed.set()
                )
            )
        await informers.wait_synced()
        with _screen() if is_live else contextlib.nullcontext():
            while True:
                changed.clear()
                _draw(Cluster(slices=tuple(slices.cache), claims=tuple(claims.cache)), driver=driver, is_live=is_live)
                if not is_live:
                    return
                await changed.wait()
                await asyncio.sleep(_PAUSE_SECONDS)


def _draw(cluster: Cluster, *, driver: str, is_live: bool) -> None:
    size = shutil.get_terminal_size()
    # The last line is for the hint; text that is printed once can be as long as it needs to be.
    height = size.lines - 1 if is_live else _HUGE
    paint = _paint if terminal.has_colour() else str
    rows = list(devicegrid.lines(cluster, width=size.columns, height=height, driver=driver, paint=paint))
    if is_live:
        rows = [*rows[: height - 1], "Ctrl-C ends"]
        sys.stdout.write(_CLEAR + "\n".join(rows))
        sys.stdout.flush()
        return
    for row in rows:
        typer.echo(row)


def _paint(marks: str) -> str:
    """Return the marks of a node in colour."""
    coloured = _USED.sub(lambda match: typer.style(match[0], fg="green"), marks)
    return _BAD.sub(lambda match: typer.style(match[0], fg="red"), coloured)


@contextlib.contextmanager
def _screen() -> Iterator[None]:
    """Use the terminal's second screen, and bring back the first one with its content at the end."""
    sys.stdout.write(_OPEN_SCREEN)
    try:
        yield
    finally:
        sys.stdout.write(_CLOSE_SCREEN)
        sys.stdout.flush()
