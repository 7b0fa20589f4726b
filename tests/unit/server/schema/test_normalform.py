"""The form in which documents are kept."""

from typing import Any

import pytest

from drachma.server.schema import emptyfields, normalform
from tests.unit.server import served


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param({"hostNetwork": False, "nodeName": "", "volumes": []}, {}, id="what-is-empty-goes"),
        pytest.param(
            {"hostUsers": False, "priority": 0}, {"hostUsers": False, "priority": 0}, id="a-pointer-to-zero-stays"
        ),
        pytest.param({"affinity": {}}, {"affinity": {}}, id="an-empty-struct-stays"),
        pytest.param({"nodeSelector": None}, {}, id="null-is-nothing"),
        pytest.param(
            {"overhead": {"cpu": "1000m", "memory": 1024, "storage": 0.5}},
            {"overhead": {"cpu": "1", "memory": "1024", "storage": "500m"}},
            id="quantities-are-canonical",
        ),
        pytest.param({"overhead": {"cpu": "0.0001"}}, {"overhead": {"cpu": "1m"}}, id="amounts-are-rounded-up"),
        pytest.param({"unknown": {"a": None, "b": ""}}, {}, id="unknown-fields-are-dropped"),
        pytest.param({"tolerations": [None]}, {"tolerations": [{}]}, id="null-in-a-list-is-an-empty-item"),
    ],
)
def test_a_spec_is_settled(given: dict[str, Any], want: dict[str, Any]) -> None:
    settled = normalform.normalize({"spec": given}, served.schema("v1", "Pod"))
    assert settled == {"spec": want}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z", id="another-zone"),
        pytest.param("2026-01-01T00:00:00.9Z", "2026-01-01T00:00:00Z", id="fractions-go"),
        pytest.param("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", id="normal"),
    ],
)
def test_times_are_in_utc(given: str, want: str) -> None:
    settled = normalform.normalize({"status": {"startTime": given}}, served.schema("v1", "Pod"))
    assert settled["status"]["startTime"] == want


def test_settling_twice_changes_nothing() -> None:
    given = {"spec": {"overhead": {"cpu": "1500m"}, "hostNetwork": True}, "status": {"conditions": [{"type": "X"}]}}
    once = normalform.normalize(given, served.schema("v1", "Pod"))
    assert normalform.normalize(once, served.schema("v1", "Pod")) == once


@pytest.mark.parametrize(
    ("api_version", "kind", "given", "want"),
    [
        pytest.param(
            "v1",
            "Pod",
            {"status": {"conditions": [{"type": "Ready"}]}},
            {"conditions": [{"type": "Ready", "status": "", "lastProbeTime": None, "lastTransitionTime": None}]},
            id="conditions-have-their-times",
        ),
        pytest.param(
            "apps/v1",
            "ReplicaSet",
            {"status": {}},
            {"replicas": 0},
            id="a-count-is-always-there",
        ),
    ],
)
def test_what_go_always_writes(api_version: str, kind: str, given: dict[str, Any], want: dict[str, Any]) -> None:
    emptyfields.fill(given, served.schema(api_version, kind))
    assert given["status"] == want
