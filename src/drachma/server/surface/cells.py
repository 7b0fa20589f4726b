"""Cells of tables, for the records of kinds: names, ages, selectors, templates."""

from datetime import datetime
from typing import Any, Final

from drachma.server.surface import age
from drachma.server.surface.layout import Document

_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_MAX_TEXTS: Final = 3


def name(document: Document) -> str:
    return str(part(document, "metadata").get("name", ""))


def since_creation(document: Document, now: datetime) -> str:
    return age.since(part(document, "metadata").get("creationTimestamp"), now=now)


def part(document: Document, field: str) -> Document:
    """Return an object inside a document; empty if it is absent."""
    return document.get(field) or {}


def template(workload: Document, *, absent: str) -> list[str]:
    """Return the cells with containers, images and selector of a workload; ``absent`` stands for no selector."""
    spec = part(workload, "spec")
    containers = part(part(spec, "template"), "spec").get("containers") or []
    lists = [",".join(each.get(field, "") for each in containers) for field in ("name", "image")]
    return [*lists, selector(spec.get("selector")) or absent]


def selector(label_selector: Any) -> str:
    """Return a label selector in kubectl's notation."""
    parts = [(key, f"{key}={value}") for key, value in part(label_selector or {}, "matchLabels").items()]
    for each in (label_selector or {}).get("matchExpressions") or []:
        key, values = each.get("key", ""), ",".join(sorted(each.get("values") or []))
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append((key, forms.get(each.get("operator", ""), f"!{key}")))
    return ",".join(text for _, text in sorted(parts, key=lambda each: each[0]))


def access_modes(modes: Any) -> str:
    """Return the abbreviations of access modes."""
    return ",".join(letters for mode, letters in _ACCESS_MODES.items() if mode in (modes or ()))


def some(texts: list[str]) -> str:
    """Return the first texts, and the number of the others."""
    more = len(texts) - _MAX_TEXTS
    return ",".join(texts[:_MAX_TEXTS]) + (f" + {more} more..." if more > 0 else "")
