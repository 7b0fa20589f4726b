"""Traces of openb (Alibaba, 2023) for simulations over time: machines as nodes with GPUs, tasks as jobs with claims.

A GPU is a device with a consumable capacity of 1000 ``milli``. A task that shares a GPU requests a part of one, other
tasks request whole GPUs. Models are an attribute of the devices, which the selectors of claims read.
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

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
TASK_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time")
DRIVER: Final = "gpu.openb.drachma.dev"
_GpuRequest = tuple[int, int, tuple[str, ...]]
_WHOLE: Final = 1000
_MOST_GPUS: Final = 128
"""Limit of devices in a ResourceSlice."""


def read_nodes(path: pathlib.Path) -> list[meta.Object]:
    """Return nodes with their slices, and the class of their devices. Raises InvalidValueError."""
    documents: list[dict[str, Any]] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
        }
    ]
    for row in csvrows.read(path, NODE_COLUMNS):
        documents += _node(row)
    return [codec.decode(each) for each in documents]


def _node(row: csvrows.Row) -> Iterator[dict[str, Any]]:
    name = row.text("sn")
    if not name:
        row.refuse("sn", "must not be empty")
    allocatable = {
        "cpu": f"{row.count('cpu_milli')}m",
        "memory": f"{row.count('memory_mib')}Mi",
        "pods": "1000",
    }
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }
    gpus = row.count("gpu", most=_MOST_GPUS)
    if gpus:
        device = {
            "attributes": {"model": {"string": row.text("model")}},
            "allowMultipleAllocations": True,
            "capacity": {"milli": {"value": str(_WHOLE)}},
        }
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-gpus"},
            "spec": {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"gpu-{number}", **device} for number in range(gpus)],
            },
        }


class OpenbTasks:
    """Tasks of a trace."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path: Final = path
        self._shapes: Final[dict[tuple[int, int, _GpuRequest], JobShape]] = {}

    def objects(self) -> list[meta.Object]:
        """Return the claim templates of all tasks, each once. Raises InvalidValueError."""
        templates = {key: None for row in csvrows.read(self._path, TASK_COLUMNS) if (key := _gpu_request(row))[0]}
        return [codec.decode(_template(*key)) for key in templates]

    def arrivals(self) -> Iterator[Arrival]:
        """Return the tasks in the order of their creation. Raises InvalidValueError."""
        return arrivalorder.sort_arrivals(self._path, self._read(), field="creation_time")

    def _read(self) -> Iterator[tuple[csvrows.Row, Arrival]]:
        for row in csvrows.read(self._path, TASK_COLUMNS):
            created = row.amount("creation_time")
            duration = None
            if row.text("deletion_time"):
                duration = row.amount("deletion_time") - created
                if duration < 0:
                    row.refuse("deletion_time", f"must not be before creation_time {row.text('creation_time')}")
            yield row, Arrival(created, row.text("name"), self._shape(row), duration)

    def _shape(self, row: csvrows.Row) -> JobShape:
        request = _gpu_request(row)
        key = (row.count("cpu_milli"), row.count("memory_mib"), request)
        shape = self._shapes.get(key)
        if shape is None:
            container = pod.Container(
                name="task",
                resources=pod.ResourceRequirements(
                    requests={
                        "cpu": quantity.Quantity.parse(f"{key[0]}m"),
                        "memory": quantity.Quantity.parse(f"{key[1]}Mi"),
                    },
                    claims=(pod.ContainerClaim(name="gpu"),) if request[0] else (),
                ),
            )
            claims = (
                (pod.PodResourceClaim(name="gpu", resource_claim_template_name=_template_name(*request)),)
                if request[0]
                else ()
            )
            shape = JobShape(spec=pod.PodSpec(containers=(container,), resource_claims=claims, priority=0))
            self._shapes[key] = shape
        return shape


def _gpu_request(row: csvrows.Row) -> _GpuRequest:
    """Return the number of GPUs, thousandths of each, and the models that a task may run on."""
    gpus = row.count("num_gpu", most=_MOST_GPUS)
    milli = row.count("gpu_milli", most=_WHOLE)
    if (gpus > 0 and not milli) or (gpus > 1 and milli != _WHOLE):
        row.refuse("gpu_milli", f"must be {'1 to ' if gpus == 1 else ''}{_WHOLE} with num_gpu {gpus}")
    models = tuple(sorted(filter(None, row.text("gpu_spec").split("|"))))
    return gpus, milli if gpus else 0, models if gpus else ()


def _template_name(gpus: int, milli: int, models: tuple[str, ...]) -> str:
    suffix = "-".join(models).lower()
    return f"gpu-{gpus}x{milli}" + (f"-{suffix}" if suffix else "")


def _template(gpus: int, milli: int, models: tuple[str, ...]) -> dict[str, Any]:
    exactly: dict[str, Any] = {
        "deviceClassName": DRIVER,
        "allocationMode": "ExactCount",
        "count": gpus,
        "capacity": {"requests": {"milli": str(milli)}},
    }
    if models:
        quoted = ", ".join(f'"{model}"' for model in models)
        exactly["selectors"] = [{"cel": {"expression": f'device.attributes["{DRIVER}"].model in [{quoted}]'}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": _template_name(gpus, milli, models), "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }
