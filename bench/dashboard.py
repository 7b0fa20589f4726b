"""The dashboard at size: 5,000 nodes, 50,000 devices, 25,000 pods, 10,000 allocated claims, and 50 open pages.

``python -m bench dashboard`` starts an API server and ``drachma dashboard`` as processes, fills the server, and prints
times of pages, the delay of an update on all open pages, and the memory of the dashboard. With a Chromium it also
measures the first paint, the time from a write to the page, and the frames of the device map. A second cluster has
20 queues with 1,000 waiting workloads, for the pages of queues.
"""

import asyncio
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
from playwright import async_api
from tests import patience
from tests.browser import world
from tests.browser.conftest import FLAGS
from tests.scenarios import processes

from drachma.api import resourceclaim
from drachma.client import http, patches
from drachma.runtime import clock

NODES = int(os.environ.get("DRACHMA_BENCH_NODES", "5000"))
DEVICES = 10
PODS = 5 * NODES
CLAIMS = 2 * NODES
BROWSERS = 50
UPDATES = 10
QUEUES = 20
WORKLOADS = 1000
PATHS = (
    "/",
    "/devices",
    "/devices/map.json",
    "/devices?view=table",
    f"/device?driver=gpu.example.com&pool=node-{0:05d}&name=gpu-0",
    "/pods",
    "/pods?q=pod-024",
    "/claims",
    "/claims/default/claim-00100",
    "/cel?expression=device.driver%20==%20%22gpu.example.com%22",
    "/whatif",
    "/reports",
)
_WRITERS = 64
DRIVER = "gpu.example.com"


def _slice(number: int) -> dict[str, Any]:
    devices = [
        {"name": f"gpu-{place}", "attributes": {"productName": {"string": f"Model {number % 5}"}}}
        for place in range(DEVICES)
    ]
    pool = {"name": f"node-{number:05d}", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{number:05d}"},
        "spec": {"driver": DRIVER, "nodeName": f"node-{number:05d}", "pool": pool, "devices": devices},
    }


def _node(number: int) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:05d}"},
        "status": {"conditions": [ready], "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
    }


def _pod(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:05d}", "namespace": "default"},
        "spec": {"nodeName": f"node-{number % NODES:05d}", "containers": [{"name": "main", "image": "app"}]},
    }


def _claim(number: int) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"claim-{number:05d}", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def _allocation(number: int) -> patches.Patch:
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": f"node-{number % NODES:05d}",
        "device": f"gpu-{number // NODES}",
    }
    user = {"resource": "pods", "name": f"pod-{number:05d}", "uid": f"uid-{number}"}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
    return patches.merge({"status": status})


async def fill(client: http.HttpClient) -> None:
    """Create all objects."""
    resources = {each.kind: each for each in await client.resources()}

    async def create(kind: str, document: dict[str, Any]) -> None:
        await client.create_document(resources[kind], document)

    async def claim(number: int) -> None:
        await create("ResourceClaim", _claim(number))
        name = f"claim-{number:05d}"
        patch = _allocation(number)
        await client.patch(resourceclaim.ResourceClaim, name, patch=patch, namespace="default", subresource="status")

    # One pod whose claim fits nowhere.
    await create("ResourceClaim", _claim(CLAIMS))
    waiting = _pod(PODS)
    del waiting["spec"]["nodeName"]
    waiting["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"claim-{CLAIMS:05d}"}]
    await create("Pod", waiting)
    limit = asyncio.Semaphore(_WRITERS)

    async def limited(work: Any) -> None:
        async with limit:
            await work

    for number in range(0, max(NODES, PODS), 1000):
        batch = range(number, number + 1000)
        works: list[Any] = [create("Node", _node(each)) for each in batch if each < NODES]
        works += [create("ResourceSlice", _slice(each)) for each in batch if each < NODES]
        works += [claim(each) for each in batch if each < CLAIMS]
        works += [create("Pod", _pod(each)) for each in batch if each < PODS]
        await asyncio.gather(*(limited(work) for work in works))


@contextlib.contextmanager
def dashboard(kubeconfig: pathlib.Path) -> Iterator[tuple[str, int]]:
    """Run ``drachma dashboard``. Yield its address and its process."""
    with tempfile.TemporaryFile() as log:
        command = [*processes.DRACHMA, "dashboard", "--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

        def look() -> str:
            found = re.search(r"^dashboard: (\S+)$", os.pread(log.fileno(), 1_000_000, 0).decode(), re.MULTILINE)
            return found[1] if found else ""

        try:
            yield patience.until(look, what="the dashboard says its address"), process.pid
        finally:
            process.terminate()
            process.wait(patience.SECONDS)


def memory_of(process: int) -> float:
    """Return the resident memory of a process in MiB."""
    text = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


@contextlib.asynccontextmanager
async def listening(session: aiohttp.ClientSession) -> AsyncIterator[aiohttp.StreamReader]:
    """Open the live stream of a page."""
    async with session.get("/live") as stream:
        await stream.content.readuntil(b"\n\n")
        await stream.content.readuntil(b"\n\n")
        yield stream.content


async def change_of(stream: aiohttp.StreamReader) -> float:
    """Return the time at which a change of claims is announced."""
    while True:
        event = await stream.readuntil(b"\n\n")
        if b"event: change" in event and b'"claims"' in event:
            return time.perf_counter()


class Rows:
    """Lines of the result, printed as they come."""

    def append(self, row: tuple[str, str]) -> None:
        name, value = row
        print(f"  {name:44} {value}", flush=True)

    def extend(self, rows: list[tuple[str, str]]) -> None:
        for row in rows:
            self.append(row)


async def measure(kubeconfig: pathlib.Path) -> None:
    rows = Rows()
    async with http.HttpClient(http.find_access(kubeconfig), clock=clock.SystemClock()) as client:
        began = time.perf_counter()
        await fill(client)
        rows.append(("time to fill the API server", f"{time.perf_counter() - began:.1f} s"))
        with dashboard(kubeconfig) as (address, process):
            base = address.partition("/?")[0]
            timeout = aiohttp.ClientTimeout(total=None)
            jar = aiohttp.CookieJar(unsafe=True)
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(base, cookie_jar=jar, timeout=timeout, connector=connector) as session:
                began = time.perf_counter()
                await (await session.get(address)).text()
                rows.append(("first page after sign-in", f"{time.perf_counter() - began:.2f} s"))
                while "Reading the cluster" in await (await session.get("/")).text():
                    await asyncio.sleep(0.1)
                rows.append(("all objects read", f"{time.perf_counter() - began:.1f} s after sign-in"))
                for path in PATHS:
                    best = await fastest(session, path)
                    rows.append((f"GET {path}", f"{best * 1000:.0f} ms"))
                for title in ("explain a pod", "explain a pod again"):
                    began = time.perf_counter()
                    async with session.get(f"/pods/default/pod-{PODS:05d}/explanation") as answer:
                        assert "reasons" in await answer.text(), "the pod is explained"
                    rows.append((title, f"{time.perf_counter() - began:.1f} s"))
                rows.append(
                    ("what if: another claim", await once(session, f"/whatif?pod=default/pod-{PODS:05d}&count=2"))
                )
                rows.append(("what if: 10 more nodes", await once(session, "/whatif?nodes=10&like=node-00000")))
                rows.append(("report of a simulation", await send_report(session)))
                idle = memory_of(process)
                rows.extend(await measure_pages(session, client, process, idle))
                rows.extend(await measure_browser(address, client))


async def once(session: aiohttp.ClientSession, path: str) -> str:
    """Return the time of one answer in words."""
    began = time.perf_counter()
    async with session.get(path) as answer:
        await answer.read()
        assert answer.status == 200, path
    return f"{time.perf_counter() - began:.1f} s"


async def send_report(session: aiohttp.ClientSession) -> str:
    """Return the time in which the page of a simulation with 2,000 samples is made."""
    form = await (await session.get("/reports")).text()
    token = re.search(r'name="form_token" value="([^"]+)"', form)
    assert token is not None
    samples = [{"time": 60.0 * at, "used": {"cpu": 0.5}, "running": at % 9, "waiting": at % 7} for at in range(2000)]
    report = json.dumps({**world.SIMULATION, "series": samples})
    began = time.perf_counter()
    async with session.post("/reports", data={"form_token": token[1], "report": report}) as answer:
        assert answer.status == 200
        assert "Waiting times" in await answer.text()
    return f"{(time.perf_counter() - began) * 1000:.0f} ms"


async def fastest(session: aiohttp.ClientSession, path: str) -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        async with session.get(path) as answer:
            await answer.read()
            assert answer.status == 200, path
        times.append(time.perf_counter() - began)
    return min(times)


async def measure_pages(
    session: aiohttp.ClientSession, client: http.HttpClient, process: int, idle: float
) -> list[tuple[str, str]]:
    """Measure updates with 50 open pages, each of which then reads the changed tiles."""
    delays, totals = [], []
    async with contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(listening(session)) for _ in range(BROWSERS)]
        content = json.loads(await (await session.get("/devices/map.json")).text())
        generation, version = content["generation"], content["version"]
        for number in range(UPDATES):
            waits = [asyncio.create_task(change_of(stream)) for stream in streams]
            began = time.perf_counter()
            await client.delete(resourceclaim.ResourceClaim, f"claim-{number:05d}", namespace="default")
            heard = await asyncio.gather(*waits)
            delays.append(max(heard) - began)
            path = f"/devices/map.json?generation={generation}&since={version}"
            changed = json.loads(await (await session.get(path)).text())
            assert changed["tiles"], "the map has the change"
            version = changed["version"]
            totals.append(time.perf_counter() - began)
            await asyncio.sleep(0.3)
        busy = memory_of(process)
    return [
        (f"update announced to all of {BROWSERS} pages", f"{statistics.median(delays) * 1000:.0f} ms"),
        ("update, with the changed tile of the map", f"{statistics.median(totals) * 1000:.0f} ms"),
        ("memory of the dashboard", f"{idle:.0f} MiB"),
        ("memory for each open page", f"{max(busy - idle, 0) / BROWSERS:.2f} MiB"),
    ]


def find_chromium() -> pathlib.Path | None:
    """Return the Chromium to measure with, or None."""
    spec = importlib.util.spec_from_file_location("install_chromium", "scripts/install_chromium.py")
    assert spec is not None
    assert spec.loader is not None
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    program: pathlib.Path | None = script.find()
    return program


async def first_paint(page: async_api.Page, url: str) -> str:
    """Return the time after which a page shows its first content."""
    await page.goto(url)
    paint = await page.evaluate(FIRST_PAINT)
    return f"{paint:.0f} ms"


FIRST_PAINT = """() => new Promise((done) => {
  const look = () => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    if (paint) done(paint.startTime);
    else setTimeout(look, 20);
  };
  look();
})"""
"""Waits for the entry, which comes after the frame and perhaps after the end of loading."""

MAP_CHANGE = """(version) => new Promise((done) => {
  const map = document.getElementById("map");
  const look = () => map.dataset.version !== version && done();
  new MutationObserver(look).observe(map, { attributes: true });
  look();
})"""
"""Waits until the map has another version."""


async def measure_browser(address: str, client: http.HttpClient) -> list[tuple[str, str]]:
    """Measure paint, updates and frames in a Chromium, if there is one."""
    program = find_chromium()
    if program is None:
        return [("browser", "no Chromium here")]
    async with async_api.async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        page = await browser.new_page(viewport={"width": 1280, "height": 860})
        await page.goto(address)
        base = address.partition("/?")[0]
        paths = ("/", "/devices", "/devices?view=table", "/pods", "/claims", "/cel", "/whatif", "/reports")
        rows = [(f"first paint of {path}", await first_paint(page, base + path)) for path in paths]
        await page.goto(f"{base}/devices")
        began = time.perf_counter()
        await page.locator(f'#map[data-devices="{NODES * DEVICES}"]').wait_for(timeout=60_000)
        rows.append(("map complete after its page", f"{(time.perf_counter() - began) * 1000:.0f} ms"))
        delays = [await update_map(page, client, number) for number in range(UPDATES, 2 * UPDATES)]
        rows.append(("from a write to the drawn map", f"{statistics.median(delays) * 1000:.0f} ms"))
        for title, moves in (("panning far", PAN_FAR), ("zooming in", ZOOM_IN), ("panning near", PAN_NEAR)):
            frames = await page.evaluate(DRIVE_MAP, moves)
            slowest = max(frames)
            rows.append((f"frame of the map, {title}", f"{statistics.median(frames):.1f} ms, at most {slowest:.1f} ms"))
        await browser.close()
    return rows


PAN_FAR = [["pan", 7, 3]] * 60
ZOOM_IN = [["zoom", -120, 0]] * 40
PAN_NEAR = [["pan", -9, 4]] * 60
DRIVE_MAP = """async (moves) => {
  const map = document.getElementById("map");
  const box = map.getBoundingClientRect();
  const middle = { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true, cancelable: true };
  const place = { ...middle, pointerId: 1 };
  const times = [];
  map.setPointerCapture = () => {};
  map.dispatchEvent(new PointerEvent("pointerdown", place));
  for (const [kind, dx, dy] of moves) {
    if (kind === "pan") {
      place.clientX += dx;
      place.clientY += dy;
      map.dispatchEvent(new PointerEvent("pointermove", place));
    } else map.dispatchEvent(new WheelEvent("wheel", { ...middle, deltaY: dx }));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    times.push(Number(map.dataset.frame));
  }
  map.dispatchEvent(new PointerEvent("pointercancel", place));
  return times;
}"""
"""Moves the map by events, and returns the time of each frame's script."""


async def update_map(page: async_api.Page, client: http.HttpClient, number: int) -> float:
    """Return the time from the deletion of a claim until the map has its change."""
    version = await page.locator("#map").get_attribute("data-version")
    began = time.perf_counter()
    await client.delete(resourceclaim.ResourceClaim, f"claim-{number:05d}", namespace="default")
    await page.evaluate(MAP_CHANGE, version)
    delay = time.perf_counter() - began
    await asyncio.sleep(0.3)
    return delay


def _queue_documents() -> list[dict[str, Any]]:
    """Return queues without quota for the jobs that wait in them."""
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": 4}]}]
    documents: list[dict[str, Any]] = [{**kueue, "kind": "ResourceFlavor", "metadata": {"name": "default"}}]
    for number in range(QUEUES):
        name = f"queue-{number:02}"
        groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
        spec = {"cohortName": f"cohort-{number % 4}", "namespaceSelector": {}, "resourceGroups": groups}
        documents.append({**kueue, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        local = {"name": name, "namespace": "default"}
        documents.append({**kueue, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": name}})
    for number in range(WORKLOADS):
        container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "30"}}}
        labels = {"kueue.x-k8s.io/queue-name": f"queue-{number % QUEUES:02}"}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        metadata = {"name": f"job-{number:04}", "namespace": "default", "labels": labels}
        documents.append(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": metadata,
                "spec": {"suspend": True, "template": template},
            }
        )
    return documents


async def measure_queues(kubeconfig: pathlib.Path) -> None:
    """Measure the pages of queues with many waiting workloads."""
    rows = Rows()
    async with http.HttpClient(http.find_access(kubeconfig), clock=clock.SystemClock()) as client:
        await world.create_all(client, _queue_documents())
        with dashboard(kubeconfig) as (address, process):
            base = address.partition("/?")[0]
            jar = aiohttp.CookieJar(unsafe=True)
            timeout = aiohttp.ClientTimeout(total=None)
            async with aiohttp.ClientSession(base, cookie_jar=jar, timeout=timeout) as session:
                await (await session.get(address)).text()
                while (await (await session.get("/queues")).text()).count('href="/workloads/') < 10 * QUEUES:
                    await asyncio.sleep(0.2)
                rows.append(
                    (f"GET /queues, {WORKLOADS} workloads wait", f"{await fastest(session, '/queues') * 1000:.0f} ms")
                )
                page = await (await session.get("/queues")).text()
                link = re.search(r'href="(/workloads/[^"]+)"', page)
                assert link is not None
                rows.append(("page of a waiting workload", await once(session, link[1])))
                rows.append(
                    ("what if: another quota", await once(session, "/whatif?queue=queue-00&resource=cpu&quota=90"))
                )
                rows.append(("estimated starts", await once(session, "/queues/estimates?assume=1h")))
                rows.append(("memory of the dashboard", f"{memory_of(process):.0f} MiB"))
            program = find_chromium()
            if program is not None:
                async with async_api.async_playwright() as playwright:
                    browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
                    page_of_queues = await browser.new_page()
                    await page_of_queues.goto(address)
                    rows.append(("first paint of /queues", await first_paint(page_of_queues, f"{base}/queues")))
                    await browser.close()


def main() -> None:
    if os.environ.get("DRACHMA_BENCH_NODES") != "0":
        measure_cluster()
    with tempfile.TemporaryDirectory() as folder:
        options = ("--queueing", "--dashboard-listen", "")
        server = processes.start(pathlib.Path(folder), command_name="up", options=options)
        try:
            asyncio.run(measure_queues(server.kubeconfig))
        finally:
            server.stop()


def measure_cluster() -> None:
    """Measure the pages of a large cluster."""
    print(f"dashboard: {NODES} nodes, {NODES * DEVICES} devices, {PODS} pods, {CLAIMS} claims")
    with tempfile.TemporaryDirectory() as folder:
        server = processes.start(pathlib.Path(folder))
        try:
            asyncio.run(measure(server.kubeconfig))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
