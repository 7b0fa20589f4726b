"""Custom objects beside objects of built-in kinds: what a create costs in process, without a socket or a disk.

``python -m bench customresources`` runs it alone. The definition has a schema with defaults, a list with keys and CEL
rules, as drivers' parameters have; the claim and the configuration map are of built-in kinds.
"""

import asyncio
import time
from typing import Any

import msgspec
from tests.unit.server import client
from tests.unit.server.kinds.apiextensions import widgets

from bench import timing

OBJECTS = 2_000
PATH = widgets.path()
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

_FEW = "!has(self.replicas) || self.replicas <= 8 || self.strategy == 'MPS'"
_SPEC = widgets.fields(
    driver={"type": "string", "maxLength": 63, "pattern": "^[a-z0-9.-]+$"},
    sharing={
        "type": "object",
        "properties": {
            "strategy": {"type": "string", "enum": ["TimeSlicing", "MPS"], "default": "TimeSlicing"},
            "replicas": {"type": "integer", "minimum": 1, "maximum": 64, "default": 1},
        },
        "default": {},
        "x-kubernetes-validations": [{"rule": _FEW}],
    },
    limits={
        "type": "array",
        "maxItems": 16,
        "items": widgets.fields(name={"type": "string"}, amount={"type": "string", "maxLength": 32})
        | {"required": ["name"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-validations": [{"rule": "self.all(each, !has(each.amount) || isQuantity(each.amount))"}],
    },
)


def _widget(number: int, *, is_like: bool) -> dict[str, Any]:
    limits = [{"name": "memory", "amount": f"{1 if is_like else number}Gi"}, {"name": "cores", "amount": "4"}]
    return widgets.widget(f"w-{number}", driver="gpu.example.com", limits=limits)


def _map(number: int) -> dict[str, Any]:
    data = {"driver": "gpu.example.com", "memory": f"{number}Gi", "cores": "4", "strategy": "TimeSlicing"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m-{number}"}, "data": data}


async def _create(server: client.Client, path: str, bodies: list[bytes]) -> float:
    """Microseconds of processor time for each of them."""
    started = time.process_time()
    for body in bodies:
        answer = await server.raw("POST", path, body)
        assert answer.code == 201, answer.data
    return (time.process_time() - started) / len(bodies) * 1e6


async def measure() -> list[tuple[str, ...]]:
    server = await client.start()
    made = await server.call("POST", widgets.DEFINITIONS, widgets.definition(widgets.version(spec=_SPEC)))
    assert made.code == 201, made.body
    numbers = range(OBJECTS)
    rows: list[tuple[str, ...]] = []
    for title, path, objects in (
        ("configuration map", CONFIG_MAPS, map(_map, numbers)),
        ("claim", client.CLAIMS, (client.claim(f"c-{number}") for number in numbers)),
        ("custom object", PATH, (_widget(number, is_like=False) for number in numbers)),
        ("custom object, all alike", PATH, (_widget(number + OBJECTS, is_like=True) for number in numbers)),
    ):
        spent = await _create(server, path, [msgspec.json.encode(each) for each in objects])
        rows.append((title, f"{spent:.0f} us"))
    await server.store.close()
    return rows


def main() -> None:
    timing.table("custom objects beside built-in ones", ("create", "each"), asyncio.run(measure()))
