"""The DLRM trace (Alibaba, 2025) for simulations over time: inference instances as jobs with claims.

An instance requests a percentage of a network card, which is a consumable capacity of the card, and perhaps a GPU.
Times are empty for instances that exist before the trace or outlive it. The limit of instances per node is not
simulated.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any, Final

from drachma.api import codec, meta, pod
from drachma.offline import arrivalorder
from drachma.simulate import csvrows
from drachma.simulate.timeline.events import Arrival, JobShape
from drachma.values import quantity

COLUMNS: Final = (
    "instance_sn", "role", "app_name", "cpu_request", "gpu_request", "rdma_request", "memory_request",
    "disk_request", "creation_time", "deletion_time",
)  # fmt: skip
NIC_CLASS: Final = "nic.dlrm.drachma.dev"
GPU_CLASS: Final = "gpu.dlrm.drachma.dev"
_ROLES: Final = ("CN", "HN")
_MOST_GPUS: Final = 128

_Request = tuple[int, int]
"""Number of GPUs, and percentage of a network card."""


class DlrmInstances:
    """Instances of the trace."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path: Final = path
        self._shapes: Final[dict[tuple[object, ...], JobShape]] = {}

    def objects(self) -> list[meta.Object]:
        """Return the claim templates of all instances, each once. Raises InvalidValueError."""
        requests = dict.fromkeys(map(_request, csvrows.read(self._path, COLUMNS)))
        return [codec.decode(_template(each)) for each in requests if any(each)]

    def arrivals(self) -> Iterator[Arrival]:
        """Return the instances in the order of their creation. Raises InvalidValueError."""
        return arrivalorder.sort_arrivals(self._path, self._read(), field="creation_time")

    def _read(self) -> Iterator[tuple[csvrows.Row, Arrival]]:
        for row in csvrows.read(self._path, COLUMNS):
            created = row.amount("creation_time") if row.text("creation_time") else 0.0
            duration = None
            if row.text("deletion_time"):
                duration = row.amount("deletion_time") - created
                if duration < 0:
                    row.refuse("deletion_time", f"must not be before creation_time {row.text('creation_time')}")
            if row.text("role") not in _ROLES:
                row.refuse("role", f"must be {' or '.join(_ROLES)}")
            yield row, Arrival(created, row.text("instance_sn").replace("_", "-"), self._shape(row), duration)

    def _shape(self, row: csvrows.Row) -> JobShape:
        request = _request(row)
        amounts = tuple(row.amount(field) for field in ("cpu_request", "memory_request", "disk_request"))
        key = (row.text("role"), row.text("app_name"), amounts, request)
        shape = self._shapes.get(key)
        if shape is None:
            cpu, memory, disk = amounts
            requests = {
                "cpu": quantity.Quantity.parse(f"{round(cpu * 1000)}m"),
                "memory": quantity.Quantity.parse(f"{round(memory * 1024)}Mi"),
                "ephemeral-storage": quantity.Quantity.parse(f"{round(disk * 1024)}Mi"),
            }
            name = _template_name(request)
            container = pod.Container(
                name="instance",
                resources=pod.ResourceRequirements(requests=requests, claims=(pod.ContainerClaim(name="devices"),)),
            )
            claim = pod.PodResourceClaim(name="devices", resource_claim_template_name=name)
            shape = JobShape(
                spec=pod.PodSpec(containers=(container,), resource_claims=(claim,), priority=0),
                labels={"app": row.text("app_name"), "role": row.text("role")},
            )
            self._shapes[key] = shape
        return shape


def _request(row: csvrows.Row) -> _Request:
    return row.count("gpu_request", most=_MOST_GPUS), row.count("rdma_request", most=100)


def _template_name(request: _Request) -> str:
    gpus, percent = request
    return f"gpu-{gpus}-nic-{percent}"


def _template(request: _Request) -> dict[str, Any]:
    gpus, percent = request
    requests: list[dict[str, Any]] = []
    if gpus:
        requests.append({"name": "gpu", "exactly": {"deviceClassName": GPU_CLASS, "count": gpus}})
    if percent:
        capacity = {"requests": {"percent": str(percent)}}
        requests.append({"name": "nic", "exactly": {"deviceClassName": NIC_CLASS, "capacity": capacity}})
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": _template_name(request), "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }
