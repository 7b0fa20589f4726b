"""Attacks on stencils: a client repeats the name of its object in fields that have other rules than names."""

from typing import Any

import pytest

from tests.unit.server import client

ATTEMPTS = 12
"""More than it takes until a stencil is made."""


def _pod(name: str, *, container: str = "c", cpu: str = "1", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    containers = [{"name": container, "image": "pause", "resources": resources}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def _claim(name: str, amount: str) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", "capacity": {"requests": {"memory": amount}}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


@pytest.mark.parametrize(
    ("path", "make"),
    [
        pytest.param("/api/v1/namespaces/default/pods", lambda name: _pod(name, cpu=name), id="quantity-of-a-pod"),
        pytest.param(
            "/api/v1/namespaces/default/pods",
            lambda name: _pod(name, tolerations=[{"key": "k", "operator": "Lt", "value": name}]),
            id="number-in-a-toleration",
        ),
        pytest.param(
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
            lambda name: _claim(name, name),
            id="quantity-of-a-claim",
        ),
    ],
)
async def test_a_name_in_another_field_obeys_the_rules_of_that_field(path: str, make: Any) -> None:
    server = await client.start()
    codes = [(await server.call("POST", path, make(f"x-{number}"))).code for number in range(ATTEMPTS)]
    assert 201 not in codes, codes


async def test_a_long_name_in_a_short_field_is_refused() -> None:
    """A claim may have a longer name than one of its requests."""
    server = await client.start()
    codes = []
    for number in range(ATTEMPTS):
        name = f"x-{number}-" + "y" * 80
        document = _claim(name, "1Gi")
        document["spec"]["devices"]["requests"][0]["name"] = name
        path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
        codes.append((await server.call("POST", path, document)).code)
    assert 201 not in codes, codes
