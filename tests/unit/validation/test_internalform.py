"""Documents in the form of upstream's internal types."""

import json
from typing import Any

import pytest

from drachma.api import types
from drachma.bounds import effort
from drachma.validation import internalform

TYPES = [
    "AWSElasticBlockStoreVolumeSource", "Affinity", "Container", "EphemeralContainer", "EphemeralVolumeSource",
    "PersistentVolumeClaimSpec", "PersistentVolumeClaimTemplate", "PersistentVolumeSource", "PodSpec",
    "PodTemplateSpec", "Probe", "Volume",
]  # fmt: skip


def _names(document: Any) -> list[str]:
    return list(json.loads(internalform.render(document, "PodSpec")))


@pytest.mark.parametrize("name", TYPES)
def test_every_field_of_a_type_is_listed_once(name: str) -> None:
    """Walks through all types below; a field that a release adds must be added to internal.fields."""
    pending, done = [name], set()
    while pending:
        current = pending.pop()
        if current in done:
            continue
        done.add(current)
        listed = [field.name for field in internalform.fields(current)]
        schema = types.get(f"core/v1.{current}")
        assert sorted(listed) == sorted(schema.fields), current
        for field in schema.fields.values():
            part = field.type.element if isinstance(field.type, types.ListOf | types.MapOf) else field.type
            if isinstance(part, types.Object) and not part.package.endswith("meta.v1"):
                pending.append(part.name)


def test_fields_have_the_names_and_the_order_of_go() -> None:
    names = _names({})
    assert names[:4] == ["Volumes", "InitContainers", "Containers", "EphemeralContainers"]
    assert names.index("DNSPolicy") < names.index("DeprecatedServiceAccount") < names.index("OS")


@pytest.mark.parametrize(
    ("document", "type_name", "want"),
    [
        pytest.param({}, "EnvVar", {"Name": "", "Value": "", "ValueFrom": None}, id="zero-values"),
        pytest.param({"name": "v"}, "LocalObjectReference", {"Name": "v"}, id="a-value"),
        pytest.param(
            {"name": "a", "optional": False}, "ConfigMapEnvSource", {"Name": "a", "Optional": False}, id="embedded"
        ),
        pytest.param({}, "EmptyDirVolumeSource", {"Medium": "", "SizeLimit": None, "Mode": None}, id="no-quantity"),
        pytest.param(
            {"resource": "r"},
            "ResourceFieldSelector",
            {"ContainerName": "", "Resource": "r", "Divisor": "0"},
            id="quantity-zero",
        ),
        pytest.param(
            {"metadata": {"labels": {"b": "1", "a": "2"}, "name": "n"}, "spec": {"accessModes": ["ReadWriteOnce"]}},
            "PersistentVolumeClaimTemplate",
            {
                "name": "n",
                "labels": {"a": "2", "b": "1"},
                "Spec": {
                    "AccessModes": ["ReadWriteOnce"],
                    "Selector": None,
                    "Resources": {"Limits": None, "Requests": None},
                    "VolumeName": "",
                    "StorageClassName": None,
                    "VolumeMode": None,
                    "DataSource": None,
                    "DataSourceRef": None,
                    "VolumeAttributesClassName": None,
                },
            },
            id="metadata-in-its-wire-form",
        ),
        pytest.param(
            {"topologyKey": "k", "labelSelector": {"matchLabels": {"b": "1", "a": "2"}}},
            "PodAffinityTerm",
            {
                "LabelSelector": {"matchLabels": {"a": "2", "b": "1"}},
                "Namespaces": None,
                "TopologyKey": "k",
                "NamespaceSelector": None,
                "MatchLabelKeys": None,
                "MismatchLabelKeys": None,
            },
            id="selectors-in-their-wire-form",
        ),
    ],
)
def test_values(document: dict[str, Any], type_name: str, want: dict[str, Any]) -> None:
    assert internalform.render(document, type_name) == json.dumps(want, separators=(",", ":"))


def test_equal_documents_do_not_differ() -> None:
    assert internalform.diff({"name": "a"}, {"name": "a"}, "EnvVar") == ""


def test_texts_are_escaped_as_go_does() -> None:
    assert '+ "Value": "\\u003ca\\u003e"' in internalform.diff({}, {"value": "<a>"}, "EnvVar")


def test_long_differences_are_not_made_on_the_event_loop() -> None:
    long = {"args": [str(number) for number in range(effort.LOOP_UNITS)]}
    with pytest.raises(effort.OverrunError), effort.limit(effort.Allowance(effort.LOOP_UNITS)):
        internalform.diff({}, long, "Container")
