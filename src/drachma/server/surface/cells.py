"""What the cells of tables are made of, for the records of kinds: names, ages, parts of documents, templates."""

from datetime import datetime
from typing import Any

from drachma.server.surface import age
from drachma.server.surface.layout import Document


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
    return [*lists, _selector(spec.get("selector")) or absent]


def _selector(selector: Any) -> str:
    parts = [(key, f"{key}={value}") for key, value in part(selector or {}, "matchLabels").items()]
    for each in (selector or {}).get("matchExpressions") or []:
        key, values = each.get("key", ""), ",".join(sorted(each.get("values") or []))
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append((key, forms.get(each.get("operator", ""), f"!{key}")))
    return ",".join(text for _, text in sorted(parts, key=lambda each: each[0]))
