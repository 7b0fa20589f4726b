"""Fuzz run: a control plane with audit on, processes that send requests, and a canary that watches it.

An interrupt ends it early; what was sent by then is judged.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import concurrent.futures
import contextlib
import multiprocessing
import pathlib
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import yaml
from tests.scenarios import processes

from bench import timing
from bench.fuzzing import auditlog, canary, identities, surface, worker
from bench.soak.wire import MERGE_PATCH, Wire

_POLICY: Final = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{{level: {level}}}]\n"
_STEPS: Final = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the run at which memory is printed. It is judged from the second on: until then caches fill."""
_MEMORY_GROWTH: Final = 1.15
_PROGRESS_SECONDS: Final = 30.0
_ROLE_SECONDS: Final = 1.0
_HISTORY_WRITES: Final = 10_000
"""Writes that fill the history for watches, which is bounded by as many events. Few requests of the run write, so that
it would fill over hundreds of thousands of requests and look like memory that grows."""
_FILLERS: Final = 16


def main(arguments: Sequence[str] = ()) -> int:
    """Run it; return 1 if the server broke a promise."""
    parser = argparse.ArgumentParser("python -m bench.fuzzing", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--audit-level", default="RequestResponse")
    parser.add_argument("--folder", type=pathlib.Path, help="where findings and logs are kept")
    options = parser.parse_args(list(arguments))
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="fuzz"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / worker.STOP).unlink(missing_ok=True)
    print(f"fuzz run: seed {options.seed}, {options.requests:,} requests, findings in {folder}", flush=True)
    tokens = identities.make_tokens()
    (folder / "tokens.csv").write_text(identities.token_file(tokens))
    (folder / "audit.yaml").write_text(_POLICY.format(level=options.audit_level))
    audit_log = folder / "audit.log"
    server_options: tuple[str, ...] = (
        "--queueing",
        "--gangs",
        "--nodes",
        "1",
        "--token-auth-file",
        str(folder / "tokens.csv"),
    )
    server_options += ("--audit-policy-file", str(folder / "audit.yaml"), "--audit-log-path", str(audit_log))
    with processes.running(folder / "data", command_name="up", options=server_options) as server:
        problems = asyncio.run(_run(options, server, folder, tokens=tokens))
        if server.process.poll() is not None:
            problems.append(f"the server has ended with {server.process.returncode}")
    began = time.monotonic()
    events, damaged, missing = auditlog.check(audit_log, folder.glob("answered-*.txt"))
    seconds = time.monotonic() - began
    print(f"audit log: {events:,} events, {damaged} damaged, {len(missing)} missing ({seconds:.0f} s to check)")
    if damaged or missing:
        problems.append(f"audit log: {damaged} lines are damaged, {len(missing)} requests missing: {missing[:5]}")
    audit_log.unlink()
    print(*problems or ["no problems"], sep="\n")
    return 1 if problems else 0


async def _run(
    options: argparse.Namespace, server: processes.Process, folder: pathlib.Path, *, tokens: dict[str, str]
) -> list[str]:
    """Send all requests; print what came of them and return the promises that were broken."""
    content = yaml.safe_load(server.kubeconfig.read_text())
    authority = base64.b64decode(content["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    host, port = server.url.removeprefix("https://").split(":")
    async with (
        Wire(server.url, server.token, authority) as admin,
        Wire(server.url, tokens[identities.VIEWER], authority) as viewer,
    ):
        authorizations = await identities.make_authorizations(admin, server.token, tokens)
        served = surface.read_surface(await _read_documents(admin))
        print(f"  {len(served.operations):,} operations, {len(served.schemas):,} schemas", flush=True)
        await _fill_history(admin)
        observer = canary.Canary(viewer, server.process.pid)
        watching = [asyncio.create_task(observer.read()), asyncio.create_task(observer.sample_memory())]
        assignments = [
            worker.Assignment(
                number=number,
                seed=options.seed * 1000 + number,
                requests=options.requests // options.workers,
                host=host,
                port=int(port),
                authority=authority,
                tokens=authorizations,
                served=served,
                findings=folder,
            )
            for number in range(options.workers)
        ]
        watching.append(asyncio.create_task(_keep_roles(admin)))
        watching.append(asyncio.create_task(_print_progress(folder, observer, total=options.requests)))
        began = time.monotonic()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, (folder / worker.STOP).touch)
        with concurrent.futures.ProcessPoolExecutor(
            options.workers, mp_context=multiprocessing.get_context("spawn")
        ) as pool:
            running = [loop.run_in_executor(pool, worker.run, assignment) for assignment in assignments]
            reports = await asyncio.gather(*running)
        seconds = time.monotonic() - began
        for task in watching:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    return _summarize(reports, observer, seconds=seconds)


async def _read_documents(wire: Wire) -> list[dict[str, Any]]:
    index = (await wire.call("GET", "/openapi/v3")).document["paths"]
    return [(await wire.call("GET", entry["serverRelativeURL"])).document for entry in index.values()]


async def _fill_history(admin: Wire) -> None:
    """Write one object so often that the history for watches is as long as it becomes."""
    path = f"/api/v1/namespaces/{identities.KEPT}/configmaps"
    await admin.call("POST", path, {"metadata": {"name": "history"}})
    numbers = iter(range(_HISTORY_WRITES))

    async def write() -> None:
        for number in numbers:
            change = {"data": {"number": str(number), "filler": "x" * 500}}
            await admin.call("PATCH", f"{path}/history", change, content_type=MERGE_PATCH)

    await asyncio.gather(*(write() for _ in range(_FILLERS)))


async def _keep_roles(admin: Wire) -> None:
    """Restore the rights of the users while requests of the run delete them."""
    while True:
        await asyncio.sleep(_ROLE_SECONDS)
        await identities.restore_roles(admin)


async def _print_progress(folder: pathlib.Path, observer: canary.Canary, *, total: int) -> None:
    while True:
        await asyncio.sleep(_PROGRESS_SECONDS)
        sent = sum(int(path.read_text() or 0) for path in folder.glob("progress-*.txt"))
        memory = observer.memory[-1][1] if observer.memory else 0.0
        print(
            f"  {sent:,} of {total:,}; {memory:.0f} MiB; canary max {max(observer.latencies) * 1000:.0f} ms, "
            f"{len(observer.slow)} above 1 s; {len(list(folder.glob('finding-*.answer')))} findings",
            flush=True,
        )


def _summarize(reports: Sequence[worker.Report], observer: canary.Canary, *, seconds: float) -> list[str]:
    codes: Counter[str] = sum((each.codes for each in reports), Counter())
    users: Counter[str] = sum((each.identities for each in reports), Counter())
    sent, findings = sum(each.sent for each in reports), sum(each.findings for each in reports)
    raw, unanswered = sum(each.raw for each in reports), sum(each.unanswered for each in reports)
    timing.table(
        f"{sent:,} requests in {seconds / 60:.1f} minutes ({sent / seconds:.0f}/s), {raw:,} of them raw bytes, "
        f"{unanswered:,} ended by the server without an answer",
        ("code", "answers"),
        [(code, f"{count:,}") for code, count in sorted(codes.items())],
    )
    timing.table("by identity", ("identity", "answers"), [(name, f"{count:,}") for name, count in users.items()])
    sizes = [observer.memory_at(share) for share in _STEPS]
    is_flat = max(sizes[2:]) <= sizes[1] * _MEMORY_GROWTH
    timing.table(
        "memory of the server",
        [*(f"at {share:.0%}" for share in _STEPS), "judgement"],
        [[*(f"{size:.0f} MiB" for size in sizes), "flat" if is_flat else "grows"]],
    )
    longest = max(observer.latencies, default=0.0)
    timing.table(
        "reads by another user, without the time that the server waited for a processor",
        ("reads", "p50", "p99", "p99.9", "max", "above 1 s", "failed", "max with that time"),
        [
            (
                f"{len(observer.latencies):,}",
                *(f"{observer.quantile(share) * 1000:.0f} ms" for share in (0.5, 0.99, 0.999)),
                f"{longest * 1000:.0f} ms",
                str(len(observer.slow)),
                str(len(observer.failures)),
                f"{observer.longest_seen * 1000:.0f} ms",
            )
        ],
    )
    problems = []
    if findings:
        problems.append(f"{findings} bad answers: see finding-*.answer and finding-*.request")
    if observer.slow:
        shown = ", ".join(f"{taken:.1f} s at {at:.0f} s" for at, taken in observer.slow[:10])
        problems.append(f"{len(observer.slow)} reads by another user took more than a second: {shown}")
    if observer.failures:
        problems.append(f"{len(observer.failures)} reads by another user failed: {observer.failures[:5]}")
    if not is_flat:
        problems.append(
            f"memory grew from {sizes[1]:.0f} MiB at {_STEPS[1]:.0%} of the run to {max(sizes[2:]):.0f} MiB"
        )
    return problems
