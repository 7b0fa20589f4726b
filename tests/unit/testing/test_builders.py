"""Builders: each method adds what it says and leaves the builder it was called on alone."""

import doctest

import pytest

from drachma import testing
from drachma.api import codec
from drachma.testing import (
    claim,
    claim_template,
    device,
    device_class,
    job,
    pod,
    resource_slice,
    subrequest,
    taint_rule,
)
from drachma.values import semver


def test_claim() -> None:
    built = (
        claim("c", namespace="ns")
        .request(
            "gpu", device_class="gpu.example.com", count=2, select="device.driver == 'd'", capacity={"memory": "1Gi"}
        )
        .first_available("nic", subrequest("fast", "fast"), subrequest("slow", "slow", count=2))
        .match_attribute("a.b/root", "gpu", "nic")
        .config("d", {"x": 1}, "gpu")
    )
    assert codec.encode(built.build())["spec"]["devices"] == {
        "requests": [
            {
                "name": "gpu",
                "exactly": {
                    "deviceClassName": "gpu.example.com",
                    "selectors": [{"cel": {"expression": "device.driver == 'd'"}}],
                    "count": 2,
                    "capacity": {"requests": {"memory": "1Gi"}},
                },
            },
            {
                "name": "nic",
                "firstAvailable": [
                    {"name": "fast", "deviceClassName": "fast"},
                    {"name": "slow", "deviceClassName": "slow", "count": 2},
                ],
            },
        ],
        "constraints": [{"requests": ["gpu", "nic"], "matchAttribute": "a.b/root"}],
        "config": [{"requests": ["gpu"], "opaque": {"driver": "d", "parameters": {"x": 1}}}],
    }


def test_builders_are_immutable() -> None:
    empty = claim("c")
    empty.request("r", device_class="x").label("a", "b")
    assert codec.encode(empty.build()) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
    }


def test_template_is_built_like_a_claim() -> None:
    template = claim_template("t").request("r", device_class="x").build()
    assert template.spec.spec == claim("c").request("r", device_class="x").build().spec


def test_slice() -> None:
    built = (
        resource_slice("s", driver="d", pool="p")
        .on_node("n")
        .counters("gpu-0", memory="80Gi")
        .devices(
            "plain",
            device("full")
            .attributes(model="x", index=1, healthy=True, version=semver.SemVer.parse("1.2.3"), lanes=[1, 2])
            .capacity("memory", "80Gi", default="1Gi")
            .consumes("gpu-0", memory="40Gi")
            .taint("k")
            .shared(),
        )
    )
    spec = codec.encode(built.build())["spec"]
    assert [entry["name"] for entry in spec["devices"]] == ["plain", "full"]
    assert spec["devices"][1]["attributes"] == {
        "model": {"string": "x"},
        "index": {"int": 1},
        "healthy": {"bool": True},
        "version": {"version": "1.2.3"},
        "lanes": {"ints": [1, 2]},
    }
    assert spec["pool"] == {"name": "p", "generation": 1, "resourceSliceCount": 1}


def test_mixed_list_attributes_are_refused() -> None:
    with pytest.raises(TypeError, match="values of one type"):
        device("d").attributes(a=[1, "x"])


def test_allocated_claim() -> None:
    built = claim("c").allocated(("r", "d", "p", "x")).reserved_for("pod", uid="u").build()
    assert codec.encode(built)["status"] == {
        "allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}},
        "reservedFor": [{"resource": "pods", "name": "pod", "uid": "u"}],
    }


def test_job_takes_its_pod() -> None:
    built = job("j", pod("p").label("a", "b").container("c", claims=("gpu",)).claim("gpu", template="t")).build()
    assert built.spec.template.metadata.labels == {"a": "b"}
    assert built.spec.template.spec.resource_claims[0].resource_claim_template_name == "t"


def test_policy_objects() -> None:
    assert codec.encode(device_class("c", "true").config("d", {}).extended_resource("a.b/c").build())["spec"] == {
        "selectors": [{"cel": {"expression": "true"}}],
        "config": [{"opaque": {"driver": "d", "parameters": {}}}],
        "extendedResourceName": "a.b/c",
    }
    assert codec.encode(taint_rule("r", key="k", driver="d").build())["spec"] == {
        "deviceSelector": {"driver": "d"},
        "taint": {"key": "k", "effect": "NoSchedule"},
    }


def test_examples_in_the_docstring() -> None:
    outcome = doctest.testmod(testing)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)
