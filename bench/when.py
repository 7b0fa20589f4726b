"""Time of ``drachma when`` on a large cluster: ``python -m bench when``.

The cluster is a dump with nodes of eight GPUs. Pods with one or two GPUs use all of them and wait behind each other, so
that an estimate has to look ahead; one more cluster has a free node, so that the answer is yes. The command runs as a
user would run it, and both its CPU time and its wall time include reading the dump. ``DRACHMA_WHEN_NODES`` is the
number of nodes, 5,000 unless set.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from bench import timing

DRIVER = "gpu.example.com"
GPUS = 8
WAITING = 50
NOW = datetime.now(UTC)


def main() -> None:
    """Print the table."""
    nodes = int(os.environ.get("DRACHMA_WHEN_NODES", "5000"))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "job.json").write_text(json.dumps(_job()), encoding="utf-8")
        for title, free, options in (
            ("starts now", 20, ("--assume", "1h")),
            ("waits: yes or no", 0, ("--now",)),
            ("waits: estimate", 0, ("--assume", "1h")),
        ):
            dump = root / title.split(":")[0].replace(" ", "-")
            if not dump.exists():
                write_dump(dump, nodes, free)
            began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            command = ["when", "-f", str(root / "job.json"), "--cluster", str(dump), *options]
            answer = subprocess.run(
                [sys.executable, "-m", "drachma", *command], capture_output=True, text=True, check=False
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert answer.returncode in (0, 1), answer.stderr
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            line = answer.stdout.strip().splitlines()[-1]
            rows.append((title, f"{spent:.2f} s", f"{time.perf_counter() - began:.2f} s", line[:80]))
    timing.table(f"drachma when with {nodes:,} nodes of {GPUS} GPUs", ("question", "CPU", "wall", "answer"), rows)


def write_dump(folder: pathlib.Path, nodes: int, free: int) -> int:
    """Write a cluster whose last ``free`` nodes are idle, as ``drachma dump`` would. Return the number of pods."""
    folder.mkdir()
    lists: dict[str, list[dict[str, Any]]] = {}
    for plural, document in _objects(nodes, free):
        lists.setdefault(plural, []).append(document)
    for plural, items in lists.items():
        lines = b",\n".join(json.dumps(each, separators=(",", ":")).encode() for each in items)
        (folder / f"{plural}.json").write_bytes(b'{"apiVersion":"v1","kind":"List","items":[\n%s]}\n' % lines)
    return len(lists["pods"])


def _objects(nodes: int, free: int) -> Iterator[tuple[str, dict[str, Any]]]:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    yield "deviceclasses", _object("resource.k8s.io/v1", "DeviceClass", DRIVER, spec={"selectors": [selector]})
    yield "namespaces", _object("v1", "Namespace", "default")
    for count in (1, 2):
        yield (
            "resourceclaimtemplates",
            _object(
                "resource.k8s.io/v1",
                "ResourceClaimTemplate",
                f"gpu-{count}",
                "default",
                spec={"spec": {"devices": {"requests": [_request(count)]}}},
            ),
        )
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    for number in range(nodes):
        name = f"node-{number}"
        yield "nodes", _object("v1", "Node", name, status={"allocatable": allocatable, "capacity": allocatable})
        yield (
            "resourceslices",
            _object(
                "resource.k8s.io/v1",
                "ResourceSlice",
                f"{name}-gpus",
                spec={
                    "driver": DRIVER,
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": f"gpu-{gpu}"} for gpu in range(GPUS)],
                },
            ),
        )
        if number >= nodes - free:
            continue
        for gpu, count in ((0, 2), (2, 2), (4, 1), (5, 1), (6, 2)):
            yield from _pod(f"run-{number}-{gpu}", count, node=name, first=gpu)
    for number in range(WAITING):
        yield from _pod(f"wait-{number}", 1 + number % 2)


def _pod(name: str, count: int, *, node: str = "", first: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    created = (NOW - timedelta(seconds=hash((name, count)) % 7200)).isoformat()
    spec: dict[str, Any] = {
        "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "4", "memory": "8Gi"}, "claims": [{"name": "gpu"}]}}
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": f"gpu-{count}"}],
        "priority": 0,
    }
    status: dict[str, Any] = {"phase": "Running" if node else "Pending"}
    if node:
        spec["nodeName"] = node
        status |= {"startTime": created, "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]}
        results = [
            {"request": "gpu", "driver": DRIVER, "pool": node, "device": f"gpu-{gpu}"}
            for gpu in range(first, first + count)
        ]
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        yield (
            "resourceclaims",
            _object(
                "resource.k8s.io/v1",
                "ResourceClaim",
                f"{name}-gpu",
                "default",
                owner=name,
                spec={"devices": {"requests": [_request(count)]}},
                status={
                    "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}},
                    "reservedFor": [{"resource": "pods", "name": name, "uid": f"uid-{name}"}],
                },
            ),
        )
    yield "pods", _object("v1", "Pod", name, "default", created=created, spec=spec, status=status)


def _request(count: int) -> dict[str, Any]:
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": count}
    return {"name": "gpu", "exactly": exactly}


def _object(
    api_version: str, kind: str, name: str, namespace: str = "", *, owner: str = "", created: str = "", **parts: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    if created:
        metadata["creationTimestamp"] = created.replace("+00:00", "Z")
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": f"uid-{owner}", "controller": True}
        ]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def _job() -> dict[str, Any]:
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "4"}, "claims": [{"name": "gpu"}]}}]
    spec = {
        "containers": containers,
        "restartPolicy": "Never",
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu-2"}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "new", "namespace": "default"},
        "spec": {"template": {"spec": spec}},
    }
