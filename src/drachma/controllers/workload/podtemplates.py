"""Pods from the templates of workloads, and hashes of templates. Pure."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.values import names


def pod_document(template: Mapping[str, Any], *, owner: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return a new pod of a template for an owner. The caller may change it."""
    described = copy.deepcopy(dict(template))
    metadata = described.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": _prefix(owner["name"]),
            "namespace": namespace,
            "labels": metadata.get("labels") or {},
            "annotations": metadata.get("annotations") or {},
            "finalizers": metadata.get("finalizers") or [],
            "ownerReferences": [dict(owner)],
        },
        "spec": described.get("spec") or {},
    }


def _prefix(name: str) -> str:
    """Return the prefix of the names of pods, without a dash if that would make it invalid."""
    prefix = f"{name}-"
    # A generated name has a letter after the prefix.
    return name if names.dns1123_subdomain(f"{name}a") else prefix


# Hashes


_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH: Final = 10
_FNV_OFFSET: Final = 2166136261
_FNV_PRIME: Final = 16777619

_encode = msgspec.json.Encoder(order="sorted").encode


def template_hash(template: Mapping[str, Any], collisions: int) -> str:
    """Return a short hash of a template after so many collisions.

    Differs from upstream, which hashes the Go representation. Sets are matched by their template, not by this hash.
    """
    number = int.from_bytes(hashlib.sha256(_encode([template, collisions])).digest(), "big")
    letters = []
    for _ in range(_LENGTH):
        number, position = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[position])
    return "".join(letters)


def content_hash(content: Mapping[str, Any], collisions: int) -> str:
    """Return the hash of a revision's content after so many collisions, equal to upstream's."""
    number = _FNV_OFFSET
    for byte in (*go_json(content), *str(collisions).encode()):
        number = (number * _FNV_PRIME & 0xFFFFFFFF) ^ byte
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def go_json(content: Mapping[str, Any]) -> bytes:
    """Encode JSON as Go does: with sorted keys, and with HTML characters escaped."""
    encoded = _encode(content)
    for plain, escaped in ((b"&", rb"\u0026"), (b"<", rb"\u003c"), (b">", rb"\u003e")):
        encoded = encoded.replace(plain, escaped)
    return encoded.replace("\u2028".encode(), rb"\u2028").replace("\u2029".encode(), rb"\u2029")
