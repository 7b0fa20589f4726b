"""Annotations for AppArmor: rules, and the fields that pods get for them."""

from typing import Any

import pytest

from drachma.validation.podspec import apparmor

PREFIX = apparmor.PREFIX


def spec(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"containers": list(containers or ({"name": "c"},)), **fields}


def profile(kind: str, **fields: Any) -> dict[str, Any]:
    return {"securityContext": {"appArmorProfile": {"type": kind, **fields}}}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("unconfined", {"type": "Unconfined"}, id="unconfined"),
        pytest.param("runtime/default", {"type": "RuntimeDefault"}, id="default"),
        pytest.param("localhost/x", {"type": "Localhost", "localhostProfile": "x"}, id="localhost"),
        pytest.param("localhost/", None, id="no-name"),
        pytest.param("localhost/ x", None, id="padded"),
        pytest.param("", None, id="empty"),
        pytest.param("other", None, id="other"),
    ],
)
def test_read_annotation(text: str, want: dict[str, Any] | None) -> None:
    assert apparmor.read_annotation(text) == want


def test_annotations_are_copied_to_fields() -> None:
    annotations = {f"{PREFIX}a": "unconfined", f"{PREFIX}i": "localhost/p", f"{PREFIX}d": "runtime/default", "x": "y"}
    before = spec(
        {"name": "a", "securityContext": {"runAsUser": 1}},
        {"name": "b"},
        {"name": "d", **profile("Unconfined")},
        initContainers=[{"name": "i"}],
    )
    after, warned = apparmor.copy_annotations(annotations, before)
    assert warned == [f"{PREFIX}i", f"{PREFIX}a"]
    assert after == {
        "initContainers": [{"name": "i", **profile("Localhost", localhostProfile="p")}],
        "containers": [
            {"name": "a", "securityContext": {"runAsUser": 1, "appArmorProfile": {"type": "Unconfined"}}},
            {"name": "b"},
            {"name": "d", **profile("Unconfined")},
        ],
    }


@pytest.mark.parametrize(
    ("annotation", "fields", "warns"),
    [
        pytest.param("unconfined", profile("Unconfined"), False, id="as-the-pod"),
        pytest.param("unconfined", {"os": {"name": "windows"}}, False, id="windows"),
        pytest.param("other", {}, True, id="no-profile"),
    ],
)
def test_annotations_that_are_not_copied(annotation: str, fields: dict[str, Any], *, warns: bool) -> None:
    annotations = {f"{PREFIX}c": annotation}
    assert apparmor.copy_annotations(annotations, spec(**fields)) == (
        spec(**fields),
        [f"{PREFIX}c"] if warns else [],
    )


def test_check_annotations() -> None:
    annotations = {f"{PREFIX}c": "x", f"{PREFIX}d": "", f"{PREFIX}c2": "localhost/p"}
    found = apparmor.check_annotations(annotations, spec({"name": "c"}, {"name": "c2"}))
    assert list(map(str, found)) == [
        f'metadata.annotations[{PREFIX}c]: Invalid value: "x": invalid AppArmor profile name: "x"',
        f'metadata.annotations[{PREFIX}d]: Invalid value: "d": container not found',
    ]


@pytest.mark.parametrize(
    ("annotation", "fields", "want"),
    [
        pytest.param("unconfined", profile("Unconfined"), [], id="same"),
        pytest.param("localhost/p", profile("Localhost", localhostProfile="p"), [], id="same-name"),
        pytest.param("localhost/p", {}, [], id="no-field"),
        pytest.param(
            "unconfined",
            profile("RuntimeDefault"),
            ["type: Forbidden: apparmor type in annotation and field must match"],
            id="type",
        ),
        pytest.param(
            "localhost/p",
            profile("Localhost", localhostProfile="q"),
            ["localhostProfile: Forbidden: apparmor profile in annotation and field must match"],
            id="name",
        ),
    ],
)
def test_check_match(annotation: str, fields: dict[str, Any], want: list[str]) -> None:
    at = "spec.containers[0].securityContext.appArmorProfile"
    annotations = {f"{PREFIX}c": annotation}
    messages = [f"{at}.{text}" for text in want]
    assert list(map(str, apparmor.check_match(annotations, spec({"name": "c", **fields})))) == messages
    of_pod = apparmor.check_match(annotations, spec({"name": "c"}, **fields))
    assert list(map(str, of_pod)) == messages
    assert not list(apparmor.check_match(annotations, spec({"name": "c", **fields}, os={"name": "windows"})))
