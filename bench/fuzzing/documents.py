"""Random objects that mostly follow a schema, and mutations that break them."""

from __future__ import annotations

import copy
import json
import random
import string
from collections.abc import Mapping, Sequence
from typing import Any, Final

_DEEPEST: Final = 9
_TEXTS: Final = (
    "a", "b", "gpu", "default", "1", "10m", "1Gi", "true", "Always", "cpu", "memory", "pods", "Exists", "In",
    "NoSchedule", "gpu.simulation.drachma.dev", "2026-01-01T00:00:00Z", "10.0.0.1", "device.driver == 'x'",
    "object.spec.x > 1", "^a+$", "kubernetes.io/hostname", "default-scheduler", "TCP", "node-0", "*",
)  # fmt: skip
SCALARS: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308, 1.5, "", "a", "1", "1Gi", "10x",
    "true", "\x00", "a\x00b", "\u00e4\U0001f600", "\ud800", "2026-01-01T00:00:00Z", "yesterday", "a/b/c",
    "x" * 300, "y" * 70_000, [], {}, [None], {"": ""}, [[[]]], {"a": {"b": {"c": None}}}, "1 +",
    "9" * 400, "1e9999", "-0", "\u202e", "../../x",
    "a" * 254, ["a"] * 1200, "device.attributes['x'].y.z == 1", "[" * 300, "matches('(a+)+$')",
)  # fmt: skip
"""Values that fit nowhere, or just so."""


class DocumentGenerator:
    """Source of objects for schemas."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]], *, rng: random.Random) -> None:
        self._schemas = schemas
        self._rng = rng

    def generate(self, name: str) -> dict[str, Any]:
        """Return an object for a schema; an empty one if the schema is unknown."""
        value = self._value(self._schemas.get(name, {"type": "object"}), 0)
        return value if isinstance(value, dict) else {}

    def mutate(self, document: Any, *, times: int = 2) -> Any:
        """Return a copy with a few values replaced, removed, added or repeated, anywhere."""
        rng = self._rng
        changed = copy.deepcopy(document)
        for _ in range(rng.randint(1, times)):
            place = changed
            while isinstance(place, dict | list) and place:
                key: Any = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
                if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.75:
                    place = place[key]
                    continue
                self._change(place, key)
                break
        return changed

    def _change(self, place: Any, key: Any) -> None:
        rng = self._rng
        act = rng.random()
        if act < 0.6:
            place[key] = copy.deepcopy(rng.choice(SCALARS))
        elif act < 0.75:
            del place[key]
        elif isinstance(place, dict):
            name = "".join(rng.choices(string.ascii_letters + "./-~\u00e4", k=rng.randint(1, 8)))
            place[name] = copy.deepcopy(rng.choice(SCALARS))
        else:
            place.append(copy.deepcopy(place[key]))

    def _value(self, schema: Mapping[str, Any], depth: int) -> Any:
        rng = self._rng
        while True:
            if "$ref" in schema:
                schema = self._schemas.get(schema["$ref"].rpartition("/")[2], {})
            elif schema.get("allOf"):
                schema = schema["allOf"][0]
            elif schema.get("oneOf") or schema.get("anyOf"):
                schema = rng.choice(schema.get("oneOf") or schema["anyOf"])
            else:
                break
        if schema.get("enum"):
            return rng.choice(schema["enum"])
        match schema.get("type"):
            case "object" if "properties" in schema:
                return self._object(schema, depth)
            case "object":
                inner = schema.get("additionalProperties")
                if not isinstance(inner, dict) or depth > _DEEPEST:
                    return {"a": "b"} if rng.random() < 0.5 else {}
                return {rng.choice(_TEXTS): self._value(inner, depth + 1) for _ in range(rng.randint(0, 2))}
            case "array":
                if depth > _DEEPEST:
                    return []
                return [self._value(schema.get("items", {}), depth + 1) for _ in range(rng.choice((0, 1, 1, 2)))]
            case "integer":
                return rng.choice((0, 1, 2, 30, 80, 65535, -1))
            case "number":
                return rng.choice((0.5, 1, 100.0))
            case "boolean":
                return rng.random() < 0.5
            case _:
                return self._text(schema)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        # Wide objects such as pod specs stay small, or nothing of them would ever be valid.
        chance = min(0.35, 4 / len(schema["properties"])) if depth else 0.8
        return {
            name: self._value(inner, depth + 1)
            for name, inner in schema["properties"].items()
            if name in required or (depth <= _DEEPEST and self._rng.random() < chance)
        }

    def _text(self, schema: Mapping[str, Any]) -> Any:
        match schema.get("format"):
            case "date-time":
                return "2026-01-01T00:00:00Z"
            case "byte":
                return "YQ=="
            case "int-or-string":
                return self._rng.choice((1, "10%", "http"))
        return self._rng.choice(_TEXTS)


def encode_json(document: Any) -> bytes:
    """Encode as JSON; lone surrogates stay escapes."""
    return json.dumps(document, ensure_ascii=True).encode()


def damage(data: bytes, *, rng: random.Random) -> bytes:
    """Return bytes that are no longer a valid document: cut, flipped, nested, repeated or with invalid UTF-8."""
    match rng.randrange(8):
        case 0:
            return data[: rng.randint(0, len(data))]
        case 1:
            at = rng.randint(0, len(data))
            return data[:at] + rng.randbytes(rng.randint(1, 8)) + data[at:]
        case 2:
            return data.replace(b'"', b'"\xff\xfe', 1)
        case 3:
            return data.replace(b":", b':"\xc3\x28",', 1)
        case 4:
            levels = rng.choice((50, 250, 5_000, 100_000))
            return b'{"a":' * levels + b"1" + b"}" * levels
        case 5:
            return data[:1] + b'"kind":"A","kind":"B",' + data[1:]
        case 6:
            return data + data
        case _:
            return b"[" * rng.choice((1, 300, 60_000))


def choose(values: Sequence[Any], *, rng: random.Random, default: Any) -> Any:
    """Return one of the values, or the default if there are none."""
    return rng.choice(values) if values else default
