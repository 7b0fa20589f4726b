"""Admission of volumes and volume claims: the default class, and the finalizer of objects in use."""

from typing import Any

import pytest

from tests.unit.server import client

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
OLD = {"volume.beta.kubernetes.io/storage-class": "mine"}


def _claim(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "c", "annotations": annotations or {}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }


@pytest.mark.parametrize(
    ("claim", "want"),
    [
        pytest.param(_claim(), "fast", id="names-none"),
        pytest.param(_claim(storageClassName="mine"), "mine", id="names-one"),
        pytest.param(_claim(storageClassName=""), "", id="wants-none"),
        pytest.param(_claim(OLD), None, id="names-one-by-annotation"),
    ],
)
async def test_the_class_of_claims(claim: dict[str, Any], want: str | None) -> None:
    server = await client.start(disabled_plugins=())
    for name in ("fast", "slow"):
        marks = {"storageclass.kubernetes.io/is-default-class": "true"} if name == "fast" else {}
        made = {"metadata": {"name": name, "annotations": marks}, "provisioner": "example.com/p"}
        assert (await server.call("POST", CLASSES, made)).code == 201
    assert (await server.call("POST", CLAIMS, claim)).body["spec"].get("storageClassName") == want


async def test_without_a_class_for_them() -> None:
    server = await client.start(disabled_plugins=())
    assert "storageClassName" not in (await server.call("POST", CLAIMS, _claim())).body["spec"]


async def test_the_finalizer() -> None:
    server = await client.start(disabled_plugins=())
    made = await server.call("POST", CLAIMS, _claim())
    assert made.body["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    volume = {
        "metadata": {"name": "v", "finalizers": ["example.com/own"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/v"}},
    }
    made = await server.call("POST", "/api/v1/persistentvolumes", volume)
    assert made.body["metadata"]["finalizers"] == ["example.com/own", "kubernetes.io/pv-protection"]


async def test_the_finalizer_can_be_left_out() -> None:
    server = await client.start(disabled_plugins=("StorageObjectInUseProtection",))
    assert "finalizers" not in (await server.call("POST", CLAIMS, _claim())).body["metadata"]
