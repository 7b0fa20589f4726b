"""Questions about CDI files for the interface's own library and for ours, from random specs with random changes."""

import json
import random
from pathlib import Path
from typing import Any

from drachma import errors
from drachma.nodewire.cdi import document, names, registry, rules, spec
from tests.property import mutations

Document = dict[str, Any]

_KINDS = ("vendor.com/class", "a/b", "ven-dor.io/cl_ass", "1vendor.com/class", "vendor.com", "vendor.com/class/x")
_NAMES = ("a", "0", "gpu-1", "gpu:0", "a.b_c", "-a", "a-", "", "a b", "é")
_VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0", "v0.6.0", "1.2.0", "")
_PATHS = ("/dev/null", "/dev/zero", "/dev/null", "/dev/zero", "/dev/null", "/dev/absent", "/x", "", "relative")
_HOOK_PATHS = ("/bin/hook",) * 12 + ("",)
_HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop") * 4 + ("other",)
_ENV = ("A=1", "B=2", "A=3", "C=", "A=1=2") * 5 + ("=x", "D")
_GROUPS = ((5, 6), (0, 5), ())
_QUALIFIED = ("vendor.com/class=a", "vendor.com/class=gpu-1", "a/b=a", "vendor.com/class=absent", "a/b=0")
_PROBABILITY = 0.35
_TEXTS = ("vendor.com/class=dev", "a/b=c", "/=", "a=b", "a/b", "a/b=c=d", "a/b/c=d", "", "vendor.com/class=")
_SCALARS = (
    ("true", "yes"), ("false", "Off"), ("5", "0x5"), ("5", "0o5"), ("5", "05"), ("5", "5.0"), ("5", "1_0"),
    ("5", "+5"), ("5", '"5"'), ("null", "~"), ("null", "''"), ("5", "1e3"), ("5", "0b11"), ("5", "190:20:30"),
    ('"a"', "null"), ('"a"', "!!str 5"), ('"a"', "2020-01-01"), ('"a"', "[a]"), ('"a"', "&x a"), ('"A=1"', "A=1"),
)  # fmt: skip
"""Texts of scalars that YAML reads as something else, or in another way than JSON."""


def _maybe(rng: random.Random, name: str, value: Any) -> Document:
    return {name: value} if rng.random() < _PROBABILITY else {}


def _device_node(rng: random.Random) -> Document:
    return {
        "path": rng.choice(_PATHS),
        **_maybe(rng, "hostPath", rng.choice(_PATHS)),
        **_maybe(rng, "type", rng.choice(("c", "c", "c", "b", "u", "p", "x", ""))),
        **_maybe(rng, "major", rng.choice((0, 1, 5, -1))),
        **_maybe(rng, "minor", rng.choice((0, 3, 5))),
        **_maybe(rng, "fileMode", rng.choice((0, 438, 0o666))),
        **_maybe(rng, "permissions", rng.choice(("r", "rw", "rwm", "rwm", "mrw", "") * 3 + ("x",))),
        **_maybe(rng, "uid", rng.choice((0, 1000))),
        **_maybe(rng, "gid", rng.choice((0, 1000))),
    }


def _mount(rng: random.Random) -> Document:
    return {
        "hostPath": rng.choice(_PATHS),
        "containerPath": rng.choice(("/a", "/a/b", "/", "/a/../c", "b", "/a/", "//a") * 3 + ("",)),
        **_maybe(rng, "type", rng.choice(("bind", "tmpfs", ""))),
        **_maybe(rng, "options", rng.choice((["ro"], ["rbind", "rw"], []))),
    }


def _hook(rng: random.Random) -> Document:
    return {
        "hookName": rng.choice(_HOOKS),
        "path": rng.choice(_HOOK_PATHS),
        **_maybe(rng, "args", ["hook", "x"]),
        **_maybe(rng, "env", [rng.choice(_ENV)]),
        **_maybe(rng, "timeout", rng.choice((0, 5, -1))),
    }


def _cache_control(rng: random.Random) -> Document:
    return {
        **_maybe(rng, "closID", rng.choice(("a", "b", "c", "c", "", ".", "..", "a/b", "a\nb"))),
        **_maybe(rng, "l3CacheSchema", "L3:0=f"),
        **_maybe(rng, "memBwSchema", "MB:0=1"),
        **_maybe(rng, "schemata", ["L3:0=f"]),
        **_maybe(rng, "enableMonitoring", rng.choice((True, False))),
    }


def _network_device(rng: random.Random) -> Document:
    return {
        "hostInterfaceName": rng.choice(("eth0", "eth1", "eth2", "eth3", "")),
        "name": rng.choice(("n0", "n1", "n2", "n3")),
    }


def _edits(rng: random.Random) -> Document:
    return {
        **_maybe(rng, "env", rng.choices(_ENV, k=rng.randrange(4))),
        **_maybe(rng, "deviceNodes", [_device_node(rng) for _ in range(rng.randrange(3))]),
        **_maybe(rng, "mounts", [_mount(rng) for _ in range(rng.randrange(4))]),
        **_maybe(rng, "hooks", [_hook(rng) for _ in range(rng.randrange(3))]),
        **_maybe(rng, "additionalGids", list(rng.choice(_GROUPS))),
        **_maybe(rng, "intelRdt", _cache_control(rng)),
        **_maybe(rng, "netDevices", [_network_device(rng) for _ in range(rng.randrange(3))]),
    }


def _spec(rng: random.Random) -> Document:
    count = rng.choice((1, 1, 2, 3))
    return {
        "cdiVersion": rng.choice(("1.1.0", "v1.1.0", "1.0.0")) if rng.random() < 0.85 else rng.choice(_VERSIONS),
        "kind": rng.choice(_KINDS[:2]) if rng.random() < 0.95 else rng.choice(_KINDS),
        **_maybe(rng, "annotations", rng.choice(({"a": "b"}, {"a/b": ""}, {"A b": "c"}, {}))),
        "devices": [
            {
                "name": rng.choice(_NAMES[:5]) if rng.random() < 0.97 else rng.choice(_NAMES),
                **_maybe(rng, "annotations", {"x": "y"}),
                "containerEdits": _edits(rng) or {"env": ["E=1"]},
            }
            for _ in range(count)
        ],
        **_maybe(rng, "containerEdits", _edits(rng)),
    }


def _text(rng: random.Random, content: Any) -> str:
    text = json.dumps(content, indent=rng.choice((None, 1)))
    if rng.random() < 0.3:
        old, new = rng.choice(_SCALARS)
        text = text.replace(old, new, 1)
    return text


def _container(rng: random.Random) -> Document:
    return {
        "ociVersion": "1.0.0",
        **_maybe(
            rng,
            "process",
            {
                "user": {"uid": 1, "gid": 2, **_maybe(rng, "additionalGids", [5])},
                "cwd": "/",
                **_maybe(rng, "env", ["A=0", "Z=1"]),
            },
        ),
        **_maybe(
            rng,
            "mounts",
            [{"destination": "/a", "source": "/old", "type": "bind"}, {"destination": "/a/b/c"}, {"destination": "/"}],
        ),
        **_maybe(rng, "hooks", {"prestart": [{"path": "/first"}], "poststop": [{"path": "/last"}]}),
        **_maybe(
            rng,
            "linux",
            {
                **_maybe(rng, "devices", [{"path": "/dev/null", "type": "c", "major": 9, "minor": 9}]),
                **_maybe(rng, "resources", {"devices": [{"allow": False, "access": "rwm"}]}),
                **_maybe(rng, "intelRdt", {"closID": "old", "l3CacheSchema": "x"}),
                **_maybe(rng, "netDevices", {"eth0": {"name": "old"}}),
            },
        ),
    }


def ask(rng: random.Random) -> Document:
    """Return a question in the form that ``tests/peers/go/cdi`` reads."""
    chance = rng.random()
    if chance < 0.1:
        text = rng.choice(_TEXTS)
        place = rng.randrange(len(text) + 1)
        return {
            "kind": "name",
            "value": text[:place] + rng.choice(("", "/", "=", ".", "-", "é", "1", "_", ":", " ")) + text[place:],
        }
    content: Any = _spec(rng)
    if chance < 0.6:
        return {
            "kind": "validate",
            "text": _text(rng, mutations.mutate(content, rng) if rng.random() < 0.6 else content),
        }
    files = [
        {
            "dir": rng.randrange(2),
            "name": rng.choice(("a.json", "b.json", "c.yaml", "d.txt")),
            "text": _text(rng, mutations.mutate(each, rng) if rng.random() < 0.15 else each),
        }
        for each in [_spec(rng) for _ in range(rng.choice((1, 2, 3)))]
    ]
    listed = [device for each in files for device in _devices_of(str(each["text"]))]
    devices = [
        rng.choice(listed or _QUALIFIED) if rng.random() < 0.95 else rng.choice(_QUALIFIED)
        for _ in range(rng.choice((1, 2, 3)))
    ]
    return {"kind": "inject", "files": files, "devices": devices, "oci": _container(rng)}


def _devices_of(text: str) -> list[str]:
    try:
        return [str(each) for each in spec.qualified_names(document.parse(text.encode()))]
    except errors.DrachmaError:
        return []


def answer(question: Document, folder: Path) -> Document:
    """Return drachma's answer, in the form of the program's."""
    match question["kind"]:
        case "validate":
            return _validate(question["text"])
        case "name":
            return _name(question["value"])
        case _:
            return _inject(question, folder)


def _validate(text: str) -> Document:
    try:
        content = document.parse(text.encode())
    except errors.DrachmaError:
        return {"valid": False}
    result: Document = {"minimumVersion": spec.required_version(content)}
    try:
        rules.check(content)
    except errors.InvalidValueError as error:
        return {**result, "valid": False, "error": str(error)}
    return {**result, "valid": True, "devices": [str(name) for name in spec.qualified_names(content)]}


def _name(value: str) -> Document:
    result: Document = {"parseDevice": list(names.split(value)), "isQualified": names.is_qualified(value)}
    try:
        return {**result, "valid": True, "parts": list(names.parse(value))}
    except errors.InvalidValueError as error:
        return {**result, "valid": False, "error": str(error)}


def _inject(question: Document, folder: Path) -> Document:
    for directory in ("0", "1"):
        (folder / directory).mkdir()
    for file in question["files"]:
        (folder / str(file["dir"]) / file["name"]).write_text(file["text"])
    devices = registry.read([folder / "0", folder / "1"])
    result: Document = {
        "listDevices": list(devices.devices),
        "fileErrors": sorted(str(path.relative_to(folder)) for path in devices.problems),
    }
    try:
        return {**result, "oci": devices.inject(question["devices"], question["oci"])}
    except registry.UnresolvedError as error:
        return {**result, "error": str(error), "unresolved": list(error.devices)}
    except errors.InvalidValueError as error:
        return {**result, "error": str(error), "unresolved": None}


def agrees(question: Document, ours: Document, theirs: Document) -> bool:
    """Return True if drachma's answer is that of the library.

    Texts about files that are not decoded differ. The library panics at a null device node, mount, hook or network
    interface if no earlier error stops it; drachma refuses each of them.
    """
    if "panic" in theirs:
        return True
    if question["kind"] == "validate" and "minimumVersion" not in theirs:
        return "minimumVersion" not in ours and ours["valid"] is theirs["valid"]
    if question["kind"] == "validate" and ours == {"valid": False}:
        return theirs["valid"] is False and "null" in question["text"]
    return ours == {**theirs, **({"listDevices": theirs["listDevices"] or []} if "listDevices" in theirs else {})}
