"""Rules for classes of container runtimes."""

from collections.abc import Mapping
from typing import Any

from drachma.validation import fielderror, metadata
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import resources, tolerations
from drachma.values import names


def check(content: Mapping[str, Any]) -> Errors:
    """A class by itself."""
    handler = content.get("handler", "")
    if not handler:
        yield fielderror.required(Path("handler"))
    else:
        yield from fielderror.problems(Path("handler"), handler, names.dns1123_label(handler, unit="bytes"))
    amounts = (content.get("overhead") or {}).get("podFixed") or {}
    yield from resources.check_overhead(amounts, Path("overhead"))
    scheduling = content.get("scheduling") or {}
    at = Path("scheduling")
    yield from metadata.labels(scheduling.get("nodeSelector") or {}, at.child("nodeSelector"))
    yield from tolerations.check(scheduling.get("tolerations") or (), at.child("tolerations"))


def check_update(content: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """What a class means to container runtimes is decided once."""
    yield from metadata.unchanged(content.get("handler", ""), old.get("handler", ""), Path("handler"))
