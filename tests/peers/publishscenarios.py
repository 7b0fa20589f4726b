"""Random scenarios of publishing: what a driver publishes, what is there already, and what others change."""

import copy
import json
import random
from typing import Any

Document = dict[str, Any]

DRIVER = "driver.example.com"
NODE: Document = {"APIVersion": "v1", "Kind": "Node", "Name": "worker", "UID": "node-uid"}
_OWNERS: tuple[Document | None, ...] = (
    *[NODE] * 6,
    {"APIVersion": "apps/v1", "Kind": "ReplicaSet", "Name": "maker", "UID": "set-uid"},
    None,
)
_FEATURES = ("DRADeviceTaints", "DRAPartitionableDevices", "DRAConsumableCapacity", "DRAOptionalNodeOperations")
_FAULTS = ("conflict", "notfound", "invalid", "unavailable", "forbidden")


def _maybe(rng: random.Random, probability: float, **fields: Any) -> Document:
    return fields if rng.random() < probability else {}


def _device(rng: random.Random, name: str) -> Document:
    taint = {"key": "a.com/x", "effect": rng.choice(("NoSchedule", "NoExecute")), "value": rng.choice(("", "v"))}
    added = {"timeAdded": rng.choice(("2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"))}
    taint = {**{key: value for key, value in taint.items() if value}, **_maybe(rng, 0.3, **added)}
    return {
        "name": name,
        **_maybe(rng, 0.3, attributes={"model": {"string": rng.choice(("a", "b"))}, "n": {"int": rng.randrange(2)}}),
        **_maybe(rng, 0.2, capacity={"memory": {"value": rng.choice(("512Mi", "1Gi", "2Gi"))}}),
        **_maybe(rng, 0.3, taints=[taint]),
        **_maybe(rng, 0.15, allowMultipleAllocations=True),
    }


def _slice(rng: random.Random, letters: str) -> Document:
    names = rng.sample(letters, rng.randrange(min(4, len(letters) + 1)))
    counters = {"memory": {"value": "4Gi"}}
    return {
        "devices": [_device(rng, name) for name in names],
        **_maybe(rng, 0.1, skipNodeOperations=["PrepareResources"]),
        **_maybe(rng, 0.1, sharedCounters=[{"name": f"set-{letters[0]}", "counters": counters}]),
    }


def _pool(rng: random.Random) -> Document:
    letters = ("abcd", "efgh", "ijkl")
    return {
        "slices": [_slice(rng, each) for each in letters[: rng.choice((0, 1, 1, 1, 2, 2, 3))]],
        **_maybe(rng, 0.15, generation=rng.choice((1, 2, 5))),
    }


def _change_pool(rng: random.Random, pool: Document) -> Document:
    changed = copy.deepcopy(pool)
    slices = changed["slices"]
    match rng.randrange(7):
        case 0 if slices:
            slices.pop(rng.randrange(len(slices)))
        case 1 if len(slices) < 3:
            slices.append(_slice(rng, "mnop"))
        case 2:
            slices.reverse()
        case 3 if slices:
            rng.choice(slices)["devices"].reverse()
        case 4:
            changed["generation"] = rng.choice((0, 1, 3, 9))
        case 5 if slices:
            rng.choice(slices)["devices"].append(_device(rng, "z"))
        case _:
            for each in slices:
                each["devices"] = [_device(rng, device["name"]) for device in each["devices"]]
    return changed


def _stored_slice(
    rng: random.Random, owner: Document | None, pool_name: str, content: Document, number: int
) -> Document:
    """Return a slice as an earlier version of the driver, or another driver, may have left it."""
    owner_name = f"-{owner['Name']}" if owner is not None else ""
    index = f"{rng.choice((0, 0, 1, 2, 17)):05x}"
    name = rng.choice(
        (f"{index}-{DRIVER}{owner_name}-x{number}",) * 5
        + (f"{DRIVER}{owner_name}-x{number}", f"0{index}-{DRIVER}-x{number}")
    )
    is_node = owner is not None and owner["Kind"] == "Node"
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {
            "driver": DRIVER if rng.random() < 0.9 else "other.example.com",
            "pool": {
                "name": pool_name if rng.random() < 0.85 else "stale",
                "generation": rng.choice((1, 1, 1, 2, 3)),
                "resourceSliceCount": rng.choice((1, 1, 2, 3)),
            },
            **({"nodeName": "worker" if rng.random() < 0.9 else "other"} if is_node else {"allNodes": True}),
            **content,
        },
    }


def make(rng: random.Random) -> Document:
    """Return a scenario in the form that ``tests/peers/go/publish`` reads."""
    owner = rng.choice(_OWNERS)
    names = rng.choice((("worker",), ("worker",), ("worker",), ("pool-a", "pool-b")))
    pools = {name: _pool(rng) for name in names}
    if owner is None or owner["Kind"] != "Node":
        pools = {name: {**pool, "allNodes": True} for name, pool in pools.items()}
    existing = []
    for number in range(rng.choice((0, 0, 1, 2, 3))):
        name = rng.choice(names)
        slices = pools[name]["slices"]
        content = copy.deepcopy(rng.choice(slices)) if slices and rng.random() < 0.7 else _slice(rng, "abcd")
        existing.append(_stored_slice(rng, owner, name, content, number))
    steps: list[Document] = [{"do": "publish", "pools": pools}]
    for _ in range(rng.choice((0, 1, 1, 2))):
        changed = {name: _change_pool(rng, pool) for name, pool in pools.items()}
        match rng.randrange(6):
            case 0:
                # Updates and deletions of one pool have no order, so that others of them may fail.
                fault = {"verb": "create", "error": rng.choice(_FAULTS), "times": rng.choice((1, 2))}
                steps.append({"do": "fault", "fault": fault})
            case 1:
                steps.append({"do": "drop", "drop": rng.sample(_FEATURES, rng.choice((1, 2)))})
            case 2 if len(changed) > 1:
                changed.popitem()
            case 3 if len(names) == 1:
                stored = _stored_slice(rng, owner, names[0], _slice(rng, "abcd"), 9)
                if "nodeName" in stored["spec"]:
                    stored["spec"]["nodeName"] = "worker"
                if existing or rng.random() < 0.3:
                    stored["metadata"] = {"name": f"00011-{DRIVER}-worker-x9", "uid": "uid-x9"}
                steps.append({"do": "putSlice", "slice": stored})
        steps.append({"do": "publish", "pools": changed})
        pools = changed
    return {"driver": DRIVER, "owner": owner, "existing": existing, "steps": steps}


def text(scenario: Document) -> str:
    """Return a scenario as one line."""
    return json.dumps(scenario)
