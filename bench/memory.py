"""Peak memory of an API server under clients that do not read, large objects, and requests made to fill its caches.

``python -m bench memory`` runs all cases, each on a server process of its own with default limits, and prints the peak
of its resident memory. ``python -m bench.memory CASE ...`` runs some of them. Five thousand watches take as many
descriptors here and in the server.
"""

import contextlib
import pathlib
import resource
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from tests.scenarios import processes

from bench import load, timing

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
MEBIBYTE = 1 << 20
RECEIVE_BUFFER = 4096
"""Bytes that the system takes in for a client that does not read."""

UNREAD_CLIENTS = 40
LARGE_LIST = 48
LARGE_HISTORY = 60
LARGE_UPDATES = 100
WATCHES = 5_000
SMALL_UPDATES = 300
LARGE_OBJECTS = 40
PATCHES = 260
CONVERTED_SLICES = 60
CONVERSIONS = 12
GRACE_SECONDS = 5.0


class Memory(NamedTuple):
    """Resident memory of a process in bytes: now, and its peak."""

    now: int
    peak: int

    @classmethod
    def of(cls, server: processes.Process) -> "Memory":
        lines = pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
        sizes = {name: value for name, _, value in (line.partition(":") for line in lines)}
        return cls(*(int(sizes[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")))


class Case(NamedTuple):
    """A load, and the words that describe it."""

    title: str
    put: Callable[[processes.Process], None]


def _open(server: processes.Process, context: ssl.SSLContext) -> ssl.SSLSocket:
    host, port = server.url.removeprefix("https://").split(":")
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    plain.connect((host, int(port)))
    return context.wrap_socket(plain, server_hostname=host)


@contextlib.contextmanager
def unread(server: processes.Process, path: str, count: int) -> Iterator[None]:
    """Clients that send a request and never read the answer."""
    context = ssl.create_default_context(cafile=str(server.authority))
    request = load.request(server, "GET", path)
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            opened = stack.enter_context(_open(server, context))
            opened.sendall(request)
        yield


def _call(server: processes.Process, method: str, path: str, document: Any) -> None:
    load.Connection(server).call(load.request(server, method, path, msgspec.json.encode(document)))


def _config_map(name: str, size: int, mark: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"mark": mark, "x": "x" * size},
    }


def _update(server: processes.Process, name: str, size: int, count: int) -> str:
    """Write an object again and again; return the path of a watch that begins with the first of these writes."""
    connection = load.Connection(server)
    path = f"{CONFIG_MAPS}/{name}"
    versions = []
    for number in range(count):
        document = msgspec.json.encode(_config_map(name, size, str(number)))
        stored = connection.call(load.request(server, "PUT", path, document))
        versions.append(msgspec.json.decode(stored)["metadata"]["resourceVersion"])
    return f"{CONFIG_MAPS}?watch=1&resourceVersion={versions[0]}"


def _idle(server: processes.Process) -> None:
    _call(server, "POST", CONFIG_MAPS, _config_map("a", 10))


def _unread_lists(server: processes.Process) -> None:
    for number in range(LARGE_LIST):
        _call(server, "POST", CONFIG_MAPS, _config_map(f"large-{number}", MEBIBYTE - 1000))
    with unread(server, CONFIG_MAPS, UNREAD_CLIENTS):
        time.sleep(GRACE_SECONDS)
        _is_served(server)


def _unread_tables(server: processes.Process) -> None:
    for number in range(LARGE_LIST):
        _call(server, "POST", CONFIG_MAPS, _config_map(f"large-{number}", MEBIBYTE - 1000))
    with unread(server, f"{CONFIG_MAPS}?pretty=true", UNREAD_CLIENTS):
        time.sleep(GRACE_SECONDS)
        _is_served(server)


def _unread_watches(server: processes.Process) -> None:
    """Watches that begin with as much history as there is, and are not read while more comes."""
    _call(server, "POST", CONFIG_MAPS, _config_map("large", 1))
    path = _update(server, "large", MEBIBYTE - 1000, LARGE_HISTORY)
    with unread(server, path, UNREAD_CLIENTS):
        _update(server, "large", MEBIBYTE - 1000, LARGE_UPDATES)
        time.sleep(GRACE_SECONDS)
        _is_served(server)


def _many_watches(server: processes.Process) -> None:
    with unread(server, f"{CONFIG_MAPS}?watch=1", WATCHES):
        time.sleep(GRACE_SECONDS)
        _is_served(server)


def _many_unread_watches(server: processes.Process) -> None:
    _call(server, "POST", CONFIG_MAPS, _config_map("small", 1))
    path = _update(server, "small", 10_000, SMALL_UPDATES)
    with unread(server, path, WATCHES):
        _update(server, "small", 10_000, SMALL_UPDATES)
        time.sleep(GRACE_SECONDS)
        _is_served(server)


def _large_objects(server: processes.Process) -> None:
    for turn in range(4):
        for number in range(LARGE_OBJECTS):
            path, method = (CONFIG_MAPS, "POST") if not turn else (f"{CONFIG_MAPS}/large-{number}", "PUT")
            _call(server, method, path, _config_map(f"large-{number}", MEBIBYTE - 1000, str(turn)))
    for number in range(LARGE_OBJECTS):
        load.Connection(server).call(load.request(server, "GET", f"{CONFIG_MAPS}/large-{number}"))


def _hostile_patches(server: processes.Process) -> None:
    keys = {f"k{number}": "" for number in range(100_000)}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wide"}, "data": keys}
    _call(server, "POST", CONFIG_MAPS, document)
    for number in range(PATCHES):
        body = msgspec.json.encode({"data": {"k1": str(number)}})
        request = load.request(server, "PATCH", f"{CONFIG_MAPS}/wide", body)
        patch = request.replace(b"Content-Type: application/json", b"Content-Type: application/merge-patch+json")
        load.Connection(server).call(patch)


def _conversions(server: processes.Process) -> None:
    def resource_slice(number: int, mark: str) -> dict[str, Any]:
        attributes = {f"a{each}": {"string": f"{mark}-{'x' * 30}"} for each in range(16)}
        devices = [{"name": f"d{each}", "attributes": attributes} for each in range(64)]
        pool = {"name": f"p{number}", "generation": 1, "resourceSliceCount": 1}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"s{number}"},
            "spec": {"driver": "gpu.example.com", "nodeName": f"n{number}", "pool": pool, "devices": devices},
        }

    for turn in range(CONVERSIONS):
        for number in range(CONVERTED_SLICES):
            path, method = (SLICES, "POST") if not turn else (f"{SLICES}/s{number}", "PUT")
            _call(server, method, path, resource_slice(number, str(turn)))
        connection = load.Connection(server)
        for version in ("v1beta1", "v1beta2"):
            for number in range(CONVERTED_SLICES):
                path = f"{SLICES.replace('v1', version)}/s{number}"
                connection.call(load.request(server, "GET", path))


CASES = {
    "idle": Case("a server that does nothing", _idle),
    "lists": Case(f"{UNREAD_CLIENTS} unread lists of {LARGE_LIST} MiB", _unread_lists),
    "pretty": Case(f"{UNREAD_CLIENTS} unread lists of {LARGE_LIST} MiB, indented", _unread_tables),
    "watches": Case(
        f"{UNREAD_CLIENTS} unread watches, {LARGE_HISTORY + LARGE_UPDATES} updates of 1 MiB", _unread_watches
    ),
    "many-watches": Case(f"{WATCHES:,} idle watches", _many_watches),
    "many-unread": Case(f"{WATCHES:,} unread watches, {2 * SMALL_UPDATES} updates of 10 KB", _many_unread_watches),
    "objects": Case(f"{LARGE_OBJECTS} objects of 1 MiB, written four times", _large_objects),
    "patches": Case(f"{PATCHES} patches of an object with 100,000 keys", _hostile_patches),
    "conversions": Case(f"{CONVERTED_SLICES * CONVERSIONS:,} writes of slices, read in old versions", _conversions),
}


def _is_served(server: processes.Process) -> None:
    """Fail unless another client gets an answer."""
    load.Connection(server).call(load.request(server, "GET", "/api/v1/namespaces/default"))


def _raise_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard > WATCHES + 1000, f"{WATCHES} watches need more than the {hard} descriptors that are allowed"
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main(names: tuple[str, ...] = tuple(CASES)) -> None:
    rows = []
    _raise_descriptors()
    for name in names:
        with tempfile.TemporaryDirectory() as folder, processes.running(pathlib.Path(folder) / "data") as server:
            began = time.perf_counter()
            CASES[name].put(server)
            memory = Memory.of(server)
            seconds = time.perf_counter() - began
        rows.append(
            (CASES[name].title, *(f"{size / MEBIBYTE:,.0f}" for size in (memory.peak, memory.now)), f"{seconds:.0f}")
        )
    timing.table("memory of an API server with default limits", ("load", "peak MiB", "after MiB", "seconds"), rows)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or tuple(CASES))
