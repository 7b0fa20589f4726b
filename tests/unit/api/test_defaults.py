"""Defaults as an API server stores them, and the canonical form."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drachma.api import codec, defaults

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


def claim_with(request: dict[str, Any]) -> dict[str, Any]:
    spec = {"devices": {"requests": [request]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param({"exactly": {}}, {"exactly": {"allocationMode": "ExactCount", "count": 1}}, id="mode-and-count"),
        pytest.param(
            {"exactly": {"count": 3}}, {"exactly": {"allocationMode": "ExactCount", "count": 3}}, id="count-is-kept"
        ),
        pytest.param({"exactly": {"allocationMode": "All"}}, {"exactly": {"allocationMode": "All"}}, id="all-has-none"),
        pytest.param(
            {"exactly": {"allocationMode": "Strange"}}, {"exactly": {"allocationMode": "Strange"}}, id="unknown-mode"
        ),
        pytest.param(
            {"exactly": {"count": 0}}, {"exactly": {"allocationMode": "ExactCount", "count": 1}}, id="zero-is-unset"
        ),
        pytest.param(
            {"exactly": {"allocationMode": "All", "tolerations": [{}, {"operator": "Exists"}]}},
            {
                "exactly": {
                    "allocationMode": "All",
                    "tolerations": [{"operator": "Equal"}, {"operator": "Exists"}],
                }
            },
            id="toleration-operator",
        ),
        pytest.param(
            {"firstAvailable": [{"name": "s"}]},
            {"firstAvailable": [{"name": "s", "allocationMode": "ExactCount", "count": 1}]},
            id="subrequest",
        ),
        pytest.param({"name": "neither"}, {"name": "neither"}, id="neither-form"),
    ],
)
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_requests(given: dict[str, Any], want: dict[str, Any], kind: str) -> None:
    before, after = claim_with(given), claim_with(want)
    if kind == "ResourceClaimTemplate":
        before, after = (d | {"kind": kind, "spec": {"spec": d["spec"]}} for d in (before, after))
    assert codec.encode(defaults.apply(codec.decode(before), now=NOW)) == after


def test_taints_get_the_time_in_whole_seconds() -> None:
    given = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "spec": {"devices": [{"name": "a", "taints": [{"key": "k"}, {"timeAdded": "2020-01-01T00:00:00Z"}]}]},
    }
    taints = codec.encode(defaults.apply(codec.decode(given), now=NOW))["spec"]["devices"][0]["taints"]
    assert taints == [{"key": "k", "timeAdded": "2026-01-02T03:04:05Z"}, {"timeAdded": "2020-01-01T00:00:00Z"}]


def test_taint_rule_gets_the_time() -> None:
    given = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "spec": {"taint": {"key": "k"}}}
    rule = codec.encode(defaults.apply(codec.decode(given), now=NOW))
    assert rule["spec"]["taint"]["timeAdded"] == "2026-01-02T03:04:05Z"


def test_allocation_results_get_toleration_operators() -> None:
    result = {"request": "r", "tolerations": [{"key": "k"}]}
    given = claim_with({"name": "r"}) | {"status": {"allocation": {"devices": {"results": [result]}}}}
    stored_object = codec.encode(defaults.apply(codec.decode(given), now=NOW))
    assert stored_object["status"]["allocation"]["devices"]["results"][0]["tolerations"] == [
        {"key": "k", "operator": "Equal"}
    ]


def test_canonical_form() -> None:
    given = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s", "labels": {}, "finalizers": [], "generation": 0},
        "spec": {
            "driver": "d",
            "pool": {"name": "p"},
            "allNodes": False,
            "devices": [{"name": "a", "capacity": {"m": {"value": "0.5Gi"}}, "attributes": {"s": {"string": ""}}}],
            "sharedCounters": [{"name": "c", "counters": {"x": {}}}],
        },
    }
    assert codec.encode(defaults.canonical(codec.decode(given))) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d",
            "pool": {"name": "p", "generation": 0, "resourceSliceCount": 0},
            "allNodes": False,
            "devices": [{"name": "a", "capacity": {"m": {"value": "512Mi"}}, "attributes": {"s": {"string": ""}}}],
            "sharedCounters": [{"name": "c", "counters": {"x": {"value": "0"}}}],
        },
    }
