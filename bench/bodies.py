"""The largest bodies that a client may send, and how long others wait for their answers meanwhile.

``python -m bench bodies`` runs it alone, ``python -m bench.bodies NAME...`` only some rows. The server is a process of
its own with SQLite in the directory for temporary files. While it judges each body, another client reads and writes
small objects, one request after the other.
"""

import pathlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from tests.scenarios import processes
from tests.unit.server import client

from bench import load, timing

LIMIT = 3 * 1024 * 1024 - 4096
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
TEMPLATES = "/api/v1/namespaces/default/podtemplates"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Row(NamedTuple):
    """A request, and those that have to be made before it."""

    method: str
    path: str
    body: bytes
    content_type: str = "application/json"
    before: tuple["Row", ...] = ()


def _filled(make: Callable[[int], Any], size: int = LIMIT) -> list[Any]:
    """As many items as fit into a body."""
    items, left, number = [], size, 0
    while left > 0:
        item = make(number)
        items.append(item)
        left -= len(msgspec.json.encode(item)) + 1
        number += 1
    return items[:-1]


def _object(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _create(path: str, document: Mapping[str, Any], *before: Row) -> Row:
    return Row("POST", path, msgspec.json.encode(document), before=before)


def _pod_template(name: str, variables: list[Any]) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "env": variables}
    return _object("v1", "PodTemplate", name, template={"spec": {"containers": [container]}})


def _definition(group: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    return _object("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"widgets.{group}", spec=spec)


def _rows() -> Iterator[tuple[str, Callable[[], Row]]]:
    def labels() -> Row:
        every = dict.fromkeys(_filled(lambda number: f"label-{number:06d}.......", LIMIT - 400_000), "")
        document = _object("v1", "ConfigMap", "labels")
        document["metadata"]["labels"] = every
        return _create(CONFIGMAPS, document)

    def data() -> Row:
        every = dict.fromkeys(_filled(lambda number: f"{number:x}", LIMIT * 7 // 10), "")
        return _create(CONFIGMAPS, _object("v1", "ConfigMap", "data", data=every))

    def variables(number: int) -> Any:
        return {"name": f"V{number:x}", "value": "x"}

    def template(name: str = "template") -> Row:
        return _create(TEMPLATES, _pod_template(name, _filled(variables, LIMIT // 2)))

    def applied() -> Row:
        body = msgspec.json.encode(_pod_template("applied", _filled(variables, LIMIT // 2)))
        return Row("PATCH", f"{TEMPLATES}/applied?fieldManager=bench", body, "application/apply-patch+yaml")

    def strategic() -> Row:
        body = msgspec.json.encode(_pod_template("strategic", _filled(lambda n: variables(n + 5), LIMIT // 2)))
        path = f"{TEMPLATES}/strategic"
        return Row("PATCH", path, body, "application/strategic-merge-patch+json", (template("strategic"),))

    def operations(make: Callable[[int], Any]) -> Callable[[], Row]:
        def row() -> Row:
            body = msgspec.json.encode([make(number) for number in range(10_000)])
            return Row("PATCH", f"{TEMPLATES}/template", body, "application/json-patch+json", (template(),))

        return row

    def roles() -> Row:
        rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
        return _create(
            ROLES, _object("rbac.authorization.k8s.io/v1", "ClusterRole", "rules", rules=_filled(lambda _: rule))
        )

    def schemas() -> Row:
        properties = {f"p{number:06d}": {"type": "string"} for number in range(95_000)}
        return _create(DEFINITIONS, _definition("large.example.com", {"type": "object", "properties": properties}))

    ruled = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "list": {
                        "type": "array",
                        "maxItems": 1_500_000,
                        "items": {"type": "integer"},
                        "x-kubernetes-validations": [{"rule": "self.size() < 2000000"}],
                    },
                    "pairs": {
                        "type": "array",
                        "maxItems": 900,
                        "items": {"type": "integer"},
                        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x + y > 0))"}],
                    },
                },
            }
        },
    }

    def custom() -> Row:
        body = _object("example.com/v1", "Widget", "list", spec={"list": _filled(lambda _: 1)})
        return _create(WIDGETS, body, _create(DEFINITIONS, _definition("example.com", ruled)))

    def pairs() -> Row:
        body = _object("example.com/v1", "Widget", "pairs", spec={"pairs": [1] * 900})
        return _create(WIDGETS, body, _create(DEFINITIONS, _definition("example.com", ruled)))

    def owners() -> Row:
        fields: dict[str, Any] = {f"f:{number:x}": {} for number in range(200_000)}
        document = _object("v1", "ConfigMap", "owners", data={"a": "b"})
        entry = {
            "manager": "m",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": fields},
        }
        document["metadata"]["managedFields"] = [entry]
        return _create(CONFIGMAPS, document)

    def manifest() -> Row:
        every = "".join(f"  k{number:x}: ''\n" for number in range(220_000))
        text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: manifest\ndata:\n{every}"
        return Row("POST", CONFIGMAPS, text.encode()[:LIMIT], "application/yaml")

    def groups() -> Row:
        asked = {
            "user": "u",
            "groups": _filled(lambda n: f"{n:x}"),
            "resourceAttributes": {"verb": "get", "resource": "pods"},
        }
        return _create(REVIEWS, {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked})

    yield "labels", labels
    yield "data", data
    yield "environment variables", template
    yield "apply", applied
    yield "strategic merge patch", strategic
    yield (
        "json patch: add at the front",
        operations(lambda n: {"op": "add", "path": "/template/spec/containers/0/env/0", "value": {"name": f"A{n}"}}),
    )
    yield "json patch: test the whole", operations(lambda _: {"op": "test", "path": "/template", "value": {}})
    yield "rules of a role", roles
    yield "schemas", schemas
    yield "list of a custom resource", custom
    yield "costly rule of a custom resource", pairs
    yield "managed fields", owners
    yield "yaml", manifest
    yield "groups of a review", groups


class Neighbour(threading.Thread):
    """Another client, which reads and writes small objects one after the other; how long each of them took."""

    def __init__(self, server: processes.Process) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._connection = load.Connection(server)
        self._over = threading.Event()
        self.reads: list[float] = []
        self.writes: list[float] = []

    def run(self) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            claim = msgspec.json.encode(client.claim(f"n{id(self):x}-{number}"))
            self._take(self.writes, load.request(self._server, "POST", client.CLAIMS, claim))
            self._take(self.reads, load.request(self._server, "GET", "/api/v1/namespaces/default"))

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _take(self, times: list[float], data: bytes) -> None:
        begin = time.perf_counter()
        self._connection.call(data)
        times.append(time.perf_counter() - begin)


def _send(server: processes.Process, row: Row) -> tuple[int, float]:
    for each in row.before:
        _send(server, each)
    head = load.request(server, row.method, row.path, row.body).replace(
        b"Content-Type: application/json\r\n", b"Content-Type: %b\r\n" % row.content_type.encode(), 1
    )
    connection = load.Connection(server)
    begin = time.perf_counter()
    connection.send(head)
    first = connection.socket.recv(64)
    taken = time.perf_counter() - begin
    connection.socket.close()
    return int(first.split()[1]), taken


def measure(server: processes.Process, names: list[str]) -> None:
    rows = []
    for title, make in _rows():
        if names and not any(name in title for name in names):
            continue
        row = make()
        for each in row.before:
            _send(server, each)
        neighbour = Neighbour(server)
        neighbour.start()
        code, seconds = _send(server, row._replace(before=()))
        neighbour.stop()
        reads, writes = sorted(neighbour.reads), sorted(neighbour.writes)
        rows.append(
            (
                title,
                f"{len(row.body) / 1e6:.1f}",
                str(code),
                f"{seconds:.2f}",
                f"{reads[len(reads) // 2] * 1e3:.0f} / {reads[-1] * 1e3:.0f}",
                f"{writes[len(writes) // 2] * 1e3:.0f} / {writes[-1] * 1e3:.0f}",
            )
        )
    timing.table(
        "Large bodies, and another client meanwhile",
        ("body", "MB", "code", "seconds", "gets p50 / longest ms", "creates p50 / longest ms"),
        rows,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, processes.running(pathlib.Path(folder)) as server:
        measure(server, [] if sys.argv[0].endswith("__main__.py") and __name__ != "__main__" else sys.argv[1:])


if __name__ == "__main__":
    main()
