"""What the cells of tables are made of, for the records of kinds: names, ages, parts of documents, templates."""

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
_SHOWN: Final = 3


def name(document: Document) -> str:
    return str(part(document, "metadata").get("name", ""))


def since_creation(document: Document, now: datetime) -> str:
    return age.since(part(document, "metadata").get("creationTimestamp"), now=now)


def part(document: Document, field: str) -> Document:
    """An object inside of a document; empty where it is absent."""
    return document.get(field) or {}


def template(workload: Document, *, absent: str) -> list[str]:
    """The containers, images and selector of what runs pods; ``absent`` is shown for no selector."""
    spec = part(workload, "spec")
    containers = part(part(spec, "template"), "spec").get("containers") or []
    lists = [",".join(each.get(field, "") for each in containers) for field in ("name", "image")]
    return [*lists, selector(spec.get("selector")) or absent]


def selector(chosen: Any) -> str:
    """A label selector as people write it."""
    parts = [(key, f"{key}={value}") for key, value in part(chosen or {}, "matchLabels").items()]
    for each in (chosen or {}).get("matchExpressions") or []:
        key, values = each.get("key", ""), ",".join(sorted(each.get("values") or []))
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append((key, forms.get(each.get("operator", ""), f"!{key}")))
    return ",".join(text for _, text in sorted(parts, key=lambda each: each[0]))


def access_modes(modes: Any) -> str:
    """How a volume may be used, in letters."""
    return ",".join(letters for mode, letters in _ACCESS_MODES.items() if mode in (modes or ()))


def some(texts: list[str]) -> str:
    """The first few of many, and how many more there are."""
    more = len(texts) - _SHOWN
    return ",".join(texts[:_SHOWN]) + (f" + {more} more..." if more > 0 else "")
