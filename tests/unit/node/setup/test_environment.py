"""Environment of containers: order, references, missing sources, and the downward API."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from drachma import errors
from drachma.api import hooks
from drachma.node.podview.containers import ResourceFieldSelector
from drachma.node.podview.pod import PodView
from drachma.node.setup import downward, environment
from drachma.node.setup.sources import Keys
from drachma.values import quantity

ALLOCATABLE = {"cpu": quantity.Quantity.parse("8"), "memory": quantity.Quantity.parse("16Gi")}


class Objects:
    """Config maps and secrets by name, in place of an API server."""

    def __init__(self, objects: Mapping[str, Mapping[str, str]]) -> None:
        self._objects = objects

    async def config_map(self, name: str, *, optional: bool = False) -> Keys | None:
        return self._keys("ConfigMap", name, optional=optional)

    async def secret(self, name: str, *, optional: bool = False) -> Keys | None:
        return self._keys("Secret", name, optional=optional)

    def _keys(self, kind: str, name: str, *, optional: bool) -> Keys | None:
        if name not in self._objects:
            if optional:
                return None
            raise errors.NodeError(f'{kind.lower()} "{name}" not found')
        data = {key: value.encode() for key, value in self._objects[name].items()}
        return Keys(kind, "default", name, data)


def _pod(**container: Any) -> PodView:
    document = {
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "u1",
            "labels": {"app": "web", "tier": 'the "back"'},
        },
        "spec": {"nodeName": "n1", "serviceAccountName": "robot", "containers": [{"name": "c", **container}]},
        "status": {"hostIP": "10.0.0.1", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}]},
    }
    return msgspec.convert(document, PodView, dec_hook=hooks.decode)


async def _resolved(objects: Mapping[str, Mapping[str, str]] | None = None, **container: Any) -> dict[str, str]:
    view = _pod(**container)
    return await environment.resolve(
        view,
        view.container("c"),
        Objects(objects or {}),  # type: ignore[arg-type]
        base={"BASE": "1"},
        allocatable=ALLOCATABLE,
    )


async def test_later_variables_refer_to_earlier_ones_and_win() -> None:
    assert await _resolved(
        {"settings": {"A": "from-map", "not=a-name": "x"}, "keys": {"A": "from-secret", "B": "b"}},
        envFrom=[{"configMapRef": {"name": "settings"}}, {"prefix": "S_", "secretRef": {"name": "keys"}}],
        env=[
            {"name": "C", "value": "$(A)-$(S_B)-$(LATER)-$$(A)"},
            {"name": "A", "value": "own"},
            {"name": "D", "value": "$(A)"},
        ],
    ) == {
        "BASE": "1",
        "A": "own",
        "S_A": "from-secret",
        "S_B": "b",
        "C": "from-map-b-$(LATER)-$(A)",
        "D": "own",
    }


@pytest.mark.parametrize(
    ("reference", "want"),
    [
        pytest.param({"configMapKeyRef": {"name": "m", "key": "k"}}, "v", id="config-map"),
        pytest.param({"secretKeyRef": {"name": "m", "key": "k"}}, "v", id="secret"),
        pytest.param({"fieldRef": {"fieldPath": "metadata.labels['app']"}}, "web", id="label"),
        pytest.param({"fieldRef": {"fieldPath": "spec.serviceAccountName"}}, "robot", id="account"),
        pytest.param({"fieldRef": {"fieldPath": "status.podIPs"}}, "10.1.0.1,fd00::1", id="addresses"),
        pytest.param({"resourceFieldRef": {"resource": "limits.cpu"}}, "8", id="all-of-the-node"),
        pytest.param({"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}, "512", id="divisor"),
        pytest.param({"configMapKeyRef": {"name": "m", "key": "x", "optional": True}}, None, id="optional-key"),
        pytest.param({"secretKeyRef": {"name": "x", "key": "k", "optional": True}}, None, id="optional-object"),
    ],
)
async def test_where_values_come_from(reference: dict[str, Any], want: str | None) -> None:
    resolved = await _resolved(
        {"m": {"k": "v"}},
        env=[{"name": "V", "valueFrom": reference}],
        resources={"requests": {"memory": "512Mi"}},
    )
    assert resolved.get("V") == want


@pytest.mark.parametrize(
    ("reference", "want"),
    [
        pytest.param({"configMapKeyRef": {"name": "x", "key": "k"}}, 'configmap "x" not found', id="no-object"),
        pytest.param(
            {"configMapKeyRef": {"name": "m", "key": "x"}}, "couldn't find key x in ConfigMap default/m", id="no-key"
        ),
        pytest.param(
            {"secretKeyRef": {"name": "m", "key": "x"}}, "couldn't find key x in Secret default/m", id="secret"
        ),
        pytest.param({"fieldRef": {"fieldPath": "spec.hostname"}}, "unsupported fieldPath: spec.hostname", id="field"),
    ],
)
async def test_what_is_missing(reference: dict[str, Any], want: str) -> None:
    with pytest.raises(errors.NodeError) as error:
        await _resolved({"m": {"k": "v"}}, env=[{"name": "V", "valueFrom": reference}])
    assert str(error.value) == want


def test_labels_as_lines() -> None:
    assert downward.field(_pod(), "metadata.labels") == 'app="web"\ntier="the \\"back\\""'


def test_amounts_are_rounded_up() -> None:
    view = _pod(resources={"limits": {"cpu": "1500m"}})
    assert downward.resource(view, ResourceFieldSelector(resource="limits.cpu"), container="c", allocatable={}) == "2"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(B)", "$(B)"),
        ("$A ${A} $(", "$A ${A} $("),
        ("a$(A)b$(A)", "a1b1"),
    ],
)
def test_references(text: str, want: str) -> None:
    assert environment.expand(text, {"A": "1"}) == want
