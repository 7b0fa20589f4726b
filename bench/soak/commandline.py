"""Options of the restart matrix, and the table that it ends with."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import pathlib
import random
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

from bench import timing
from bench.soak import faults, history, invariants, matrix
from bench.soak.load import Load
from bench.soak.observer import Observer
from bench.soak.plane import LAYOUTS, Plane

_COMPONENTS = ("apiserver", "controllers", "scheduler", "queueing", "node", "driver", "up")
_UP_SHARE = 0.2
"""Part of the kills that go to the control plane in one process."""

Cells = dict[tuple[str, str], matrix.Cell]


def main(arguments: Sequence[str] = ()) -> int:
    """Run the matrix, or check a history again; return 1 if an invariant was violated."""
    options = _parse(arguments)
    if options.check is not None:
        violations = invariants.check_history(history.read_history(options.check))
        print(*violations, f"{len(violations)} violations", sep="\n")
        return 1 if violations else 0
    try:
        return asyncio.run(_run(options))
    except asyncio.CancelledError:
        return 130


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench.soak", description=matrix.__doc__)
    parser.add_argument("--kills", type=int, default=30, help="kills in all (default 30)")
    parser.add_argument("--fault-seconds", type=float, default=8.0, help="length of all other faults (default 8)")
    parser.add_argument("--repeats", type=int, default=1, help="how often each other fault is tried (default 1)")
    parser.add_argument("--seconds", type=float, default=86400.0, help="begin no further round after this long")
    parser.add_argument("--settle-every", type=int, default=60, help="kills between checks that all finishes")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", action="append", default=[], help="component or fault; may be repeated")
    parser.add_argument("--layout", choices=LAYOUTS, action="append", default=[])
    parser.add_argument("--folder", type=pathlib.Path, help="where logs and histories are kept")
    parser.add_argument("--check", type=pathlib.Path, help="check a history again instead of running")
    options = parser.parse_args(list(arguments))
    names = {*_COMPONENTS, *matrix.FAULTS}
    if unknown := set(options.only) - names:
        parser.error(f"--only {', '.join(sorted(unknown))}: not one of {', '.join(sorted(names))}")
    return options


async def _run(options: argparse.Namespace) -> int:
    began = time.monotonic()
    own_task = asyncio.current_task()
    assert own_task is not None, "this is a coroutine"
    for number in (signal.SIGINT, signal.SIGTERM):
        # Cancelled and not just ended, so that no component outlives the run.
        asyncio.get_running_loop().add_signal_handler(number, own_task.cancel)
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="soak"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"restart matrix: seed {options.seed}, {options.kills} kills, logs and histories in {folder}", flush=True)
    for what, missing in (("disk faults", faults.Disk.missing()), ("clock faults", faults.Clock.missing())):
        if missing:
            print(f"  {what} are left out: {missing}", flush=True)
    cells: Cells = defaultdict(matrix.Cell)
    exits: dict[str, int] = defaultdict(int)
    violations: list[invariants.Violation] = []
    for layout in options.layout or LAYOUTS:
        run_exits, found = await _run_layout(options, layout, folder, cells=cells, deadline=began + options.seconds)
        violations += found
        for name, count in run_exits.items():
            exits[name] += count
    _print_table(cells, exits)
    kills = sum(cell.count for (_, fault), cell in cells.items() if fault == matrix.KILL)
    minutes = (time.monotonic() - began) / 60
    print(f"\n{kills} kills in {minutes:.1f} minutes, seed {options.seed}: {len(violations)} violations")
    print(*(f"  {violation}" for violation in violations), sep="\n")
    return 1 if violations else 0


async def _run_layout(
    options: argparse.Namespace, layout: str, folder: pathlib.Path, *, cells: Cells, deadline: float
) -> tuple[Mapping[str, int], list[invariants.Violation]]:
    """Run the matrix on one layout; return how often components ended by themselves, and all violations."""
    share = 1.0 if options.layout and len(options.layout) == 1 else _UP_SHARE if layout == "up" else 1 - _UP_SHARE
    only_components = [name for name in _COMPONENTS if name in options.only] or _COMPONENTS
    only_faults = [name for name in matrix.FAULTS if name in options.only] or matrix.FAULTS
    settings = matrix.Settings(
        kills=round(options.kills * share),
        fault_seconds=options.fault_seconds,
        repeats=options.repeats,
        settle_every=options.settle_every,
        components=only_components,
        faults=only_faults,
        deadline=deadline,
    )
    rng = random.Random(f"{options.seed} {layout}")
    place = folder / layout
    place.mkdir(exist_ok=True)
    plane = Plane(place, layout, with_disks=not faults.Disk.missing(), with_clocks=not faults.Clock.missing())
    record = history.HistoryFile(folder / f"{layout}.jsonl.gz")
    print(f"{layout}:", flush=True)
    try:
        await plane.start()
        async with plane.connect() as direct, plane.connect(is_direct=False) as through_partition:
            observer = Observer(direct, record)
            observer.start()
            load = Load(through_partition, observer, rng=rng)
            load_task = asyncio.create_task(load.run())
            run = matrix.Matrix(plane, observer, load, settings=settings, rng=rng)
            work = asyncio.create_task(run.run())
            try:
                await asyncio.wait((work, load_task), return_when=asyncio.FIRST_COMPLETED)
                if load_task.done():
                    load_task.result()
                await work
            finally:
                work.cancel()
                load_task.cancel()
                observer.stop()
                with contextlib.suppress(asyncio.CancelledError):
                    await load_task
    finally:
        await plane.end()
        record.close()
    for key, cell in run.cells.items():
        total = cells[key]
        total.count += cell.count
        total.recoveries = [*total.recoveries, *cell.recoveries]
        total.violations += cell.violations
    exits: dict[str, int] = defaultdict(int)
    for component in plane.components:
        exits[component.kind] += component.exits
    return exits, observer.violations


def _print_table(cells: Cells, exits: Mapping[str, int]) -> None:
    rows = []
    for name in _COMPONENTS:
        for fault in matrix.FAULTS:
            cell = cells.get((name, fault))
            if cell is None:
                continue
            times = sorted(cell.recoveries) or [float("nan")]
            middle, longest = statistics.median(times), times[-1]
            row = (name, fault, str(cell.count), f"{middle:.1f} s", f"{longest:.1f} s", str(cell.violations))
            rows.append(row)
    headers = ("component", "fault", "count", "recovery p50", "max", "violations")
    timing.table("restart matrix", headers, rows)
    ended = ", ".join(f"{name} {count}" for name, count in exits.items() if count)
    print(f"ended by themselves and were started again: {ended or 'none'}")
