"""Rules for events of the core group; those with a time of their own say more about who reports them."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices
from drachma.values import names

_ABOUT: Final = Path("involvedObject").child("namespace")
_SHORT: Final = 128
_NOTE: Final = 1024


def check(event: Mapping[str, Any], *, namespace: str) -> Errors:
    """An event in a namespace."""
    about = (event.get("involvedObject") or {}).get("namespace", "")
    # Events about objects of cluster scope are kept in the default namespace.
    homes = ("default",) if event.get("eventTime") is None else ("default", "kube-system")
    is_at_home = namespace in homes if not about else namespace == about or event.get("eventTime") is not None
    if not is_at_home:
        yield fielderror.invalid(_ABOUT, about, "does not match event.namespace")
    if event.get("eventTime") is None:
        return
    reporter = event.get("reportingComponent", "")
    if not reporter:
        yield fielderror.required(Path("reportingComponent"))
    yield from choices.qualified_name(reporter, Path("reportingComponent"))
    for field, most in (("reportingInstance", _SHORT), ("action", _SHORT), ("reason", _SHORT), ("message", _NOTE)):
        text = event.get(field, "")
        if not text and field != "message":
            yield fielderror.required(Path(field))
        if names.byte_length(text) > most:
            yield fielderror.invalid(Path(field), "", f"can have at most {most} characters")
