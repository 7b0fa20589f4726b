"""Answers as recordings have them: what differs from run to run replaced by its name, and the first difference told."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_VOLATILE = frozenset(
    {
        "acquireTime",
        "completionTime",
        "continue",
        "creationTimestamp",
        "deletionTimestamp",
        "eventTime",
        "expirationTimestamp",
        "firstTimestamp",
        "lastTimestamp",
        "lastTransitionTime",
        "lastUpdateTime",
        "renewTime",
        "resourceVersion",
        "selfLink",
        "startTime",
        "time",
        "token",
        "uid",
    }
)
_TEXTS = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "<time>"),
        (r"kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "kube-api-access-<random>"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
        (r"too old resource version: \d+ \(\d+\)", "too old resource version: <resourceVersion>"),
        (r"(Too large resource version: \d+, current: )\d+", r"\1<resourceVersion>"),
        (r"ey[\w-]{20,}\.[\w-]+\.[\w-]+", "<token>"),
        (r"(read|write) tcp [^ ]+: ", r"\1 tcp <address>: "),
        (r"X509SHA256=[0-9a-f]{64}", "X509SHA256=<digest>"),
    )
]
_ENTRY_ORDER = ("operation", "manager", "apiVersion", "subresource")


def normal(value: Any, *, keeps_owners: bool = False) -> Any:
    """A document without what differs from run to run; managed fields only where a scenario is about them."""
    if isinstance(value, dict):
        return _normal_object(value, keeps_owners=keeps_owners)
    if isinstance(value, list):
        return [normal(each, keeps_owners=keeps_owners) for each in value]
    return _text(value) if isinstance(value, str) else value


def _normal_object(value: Mapping[str, Any], *, keeps_owners: bool) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, item in value.items():
        if key == "managedFields" and not keeps_owners:
            continue
        is_volatile = key in _VOLATILE and isinstance(item, str | int) and item != ""
        name = _text(key) if key.startswith("k:") else key
        made[name] = f"<{key}>" if is_volatile else normal(item, keeps_owners=keeps_owners)
    if isinstance(made.get("managedFields"), list):
        made["managedFields"].sort(key=lambda entry: [str(entry.get(field, "")) for field in _ENTRY_ORDER])
    prefix = made.get("generateName")
    if isinstance(prefix, str) and str(made.get("name", "")).startswith(prefix):
        made["name"] = f"{prefix}*****"
    return made


def _text(value: str) -> str:
    for pattern, name in _TEXTS:
        value = pattern.sub(name, value)
    return value


def dig(value: Any, pointer: str) -> Any:
    """What a JSON pointer points at; LookupError where that is nothing."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(name)] if isinstance(value, list) else value[name]
        except (TypeError, ValueError) as error:
            raise LookupError(pointer) from error
    return value


def has(value: Any, pointer: str) -> bool:
    try:
        dig(value, pointer)
    except LookupError:
        return False
    return True


def remove(value: Any, pointer: str) -> None:
    """Takes away what a pointer points at, if anything."""
    if has(value, pointer):
        above, _, last = pointer.rpartition("/")
        holder = dig(value, above)
        del holder[int(last) if isinstance(holder, list) else last.replace("~1", "/").replace("~0", "~")]


def includes(value: Any, part: Mapping[str, Any]) -> bool:
    """Whether an object has some fields, or a list such an object."""
    if isinstance(value, list):
        return any(includes(each, part) for each in value)
    return isinstance(value, dict) and all(value.get(key) == item for key, item in part.items())


def difference(want: Any, got: Any) -> str | None:
    """The first place where two documents differ, and how; None if nowhere."""
    return next(_differences(want, got, ""), None)


def _differences(want: Any, got: Any, place: str) -> Iterator[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(want.keys() | got.keys()):
            if key not in got:
                yield f"{place}/{key}: want {_short(want[key])}, is not there"
            elif key not in want:
                yield f"{place}/{key}: not wanted, got {_short(got[key])}"
            else:
                yield from _differences(want[key], got[key], f"{place}/{key}")
    elif isinstance(want, list) and isinstance(got, list):
        for number, (ours, theirs) in enumerate(zip(want, got, strict=False)):
            yield from _differences(ours, theirs, f"{place}/{number}")
        if len(want) != len(got):
            yield f"{place}: want {len(want)} items, got {len(got)}: {_short(got)}"
    elif want != got or type(want) is not type(got):
        yield f"{place}: want {_short(want)}, got {_short(got)}"


def _short(value: Any) -> str:
    return json.dumps(value)[:600]
