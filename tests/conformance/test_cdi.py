"""CDI files, names of devices and what is injected into containers, as the interface's Go library answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from drachma import errors
from drachma.nodewire.cdi import document, names, registry, rules, spec
from tests.conformance import vectors
from tests.conformance.vectors import Line


@vectors.each("cdi", where=lambda line: line["kind"] == "validate")
def test_cdi_validate(case: Line) -> None:
    text = case["text"] if "text" in case else json.dumps(case["spec"])
    want = case["want"]
    try:
        content = document.parse(text.encode())
    except errors.DecodeError:
        assert not want["valid"]
        assert "minimumVersion" not in want, want
        return
    assert spec.required_version(content) == want["minimumVersion"]
    if not want["valid"]:
        with pytest.raises(errors.InvalidValueError) as refused:
            rules.check(content)
        assert str(refused.value) == want["error"]
        return
    rules.check(content)
    assert [str(name) for name in spec.qualified_names(content)] == want["devices"]


@vectors.each("cdi", where=lambda line: line["kind"] == "name")
def test_cdi_name(case: Line) -> None:
    want = case["want"]
    assert list(names.split(case["value"])) == want["parseDevice"]
    assert names.is_qualified(case["value"]) is want["isQualified"]
    if not want["valid"]:
        with pytest.raises(errors.InvalidValueError) as refused:
            names.parse(case["value"])
        assert str(refused.value) == want["error"]
        return
    assert names.parse(case["value"]) == (want["vendor"], want["class"], want["device"])


@vectors.each("cdi", where=lambda line: line["kind"] == "inject")
def test_cdi_inject(case: Line, tmp_path: Path) -> None:
    want = case["want"]
    for file in case["files"]:
        path = tmp_path / str(file["dir"]) / file["name"]
        path.parent.mkdir(exist_ok=True)
        path.write_text(file["text"] if "text" in file else json.dumps(file["spec"]))
    devices = registry.read([tmp_path / "0", tmp_path / "1"])
    assert list(devices.devices) == want["listDevices"]
    assert {f"<dir>/{path.relative_to(tmp_path)}" for path in devices.problems} == set(want.get("fileErrors", ()))
    assert _outcome(devices, case, tmp_path) == {
        key: want[key] for key in ("oci", "error", "unresolved") if key in want
    }


def _outcome(devices: registry.Registry, case: Line, folder: Path) -> dict[str, Any]:
    try:
        return {"oci": devices.inject(case.get("devices", ()), case.get("oci") or {"ociVersion": ""})}
    except registry.UnresolvedError as error:
        return {"error": str(error), "unresolved": list(error.devices)}
    except errors.InvalidValueError as error:
        return {"error": str(error).replace(str(folder), "<dir>")}
