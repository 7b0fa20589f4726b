"""``drachma validate`` as a user runs it: the server's words, and an exit code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from drachma.cli import validate

GOOD = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "one"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
}
ADMIN = {
    **GOOD,
    "metadata": {"name": "admin", "namespace": "ops"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}]}},
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}}


def run(*documents: object, arguments: tuple[str, ...] = ()) -> Result:
    app = typer.Typer()
    app.command()(validate.validate)
    return CliRunner().invoke(app, ["-f", "-", *arguments], input="\n---\n".join(map(json.dumps, documents)))


def test_good() -> None:
    result = run(GOOD)
    assert result.exit_code == 0
    assert result.stdout == "resourceclaim.resource.k8s.io/one is valid\n"


def test_bad_objects_do_not_hide_good_ones() -> None:
    result = run({**GOOD, "metadata": {"name": "A"}}, GOOD)
    assert result.exit_code == 1
    assert result.stdout == "resourceclaim.resource.k8s.io/one is valid\n"
    assert 'document 1: ResourceClaim.resource.k8s.io "A" is invalid: metadata.name: ' in result.stderr


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        pytest.param([{**GOOD, "spec": {"x": 1}}], 'strict decoding error: unknown field "spec.x"', id="unknown-field"),
        pytest.param([{**GOOD, "kind": "Claim"}], "unknown kind Claim in resource.k8s.io/v1; served are", id="kind"),
        pytest.param([{**GOOD, "kind": "Claim"}], "Deployment (apps/v1), ", id="unknown-kind-lists-what-is-served"),
        pytest.param([["a"]], "document 1: expected an object, found ", id="no-object"),
        pytest.param([ADMIN, NAMESPACE], "Forbidden: admin access to devices requires", id="unlabelled-namespace"),
    ],
)
def test_refused(documents: list[object], message: str) -> None:
    result = run(*documents)
    assert result.exit_code == 1
    assert message in result.stderr


def test_admin_access_is_not_judged_without_its_namespace() -> None:
    assert run(ADMIN).exit_code == 0


def test_generated_names_and_warnings() -> None:
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"generateName": "slice-"},
        "spec": {"driver": "Gpu.example.com", "pool": {"name": "p", "resourceSliceCount": 1}, "allNodes": True},
    }
    result = run(slice_)
    assert result.exit_code == 0
    assert result.stdout == "resourceslice.resource.k8s.io/slice-xxxxx is valid\n"
    assert "warning: spec.driver: driver names should be lowercase" in result.stderr


def test_feature_gates() -> None:
    distinct = {"requests": GOOD["spec"]["devices"]["requests"], "constraints": [{"distinctAttribute": "a/b"}]}  # type: ignore[index]
    document = {**GOOD, "spec": {"devices": distinct}}
    assert run(document).exit_code == 0
    switched = run(document, arguments=("--feature-gates", "DRAConsumableCapacity=false"))
    assert "spec.devices.constraints[0].matchAttribute: Required value" in switched.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(validate.validate)
    result = CliRunner().invoke(app, ["-f", str(tmp_path / "absent.yaml")])
    assert result.exit_code == 1
    assert "absent.yaml: No such file or directory" in result.stderr


def test_members_of_lists_are_judged_one_by_one() -> None:
    result = run({"apiVersion": "v1", "kind": "List", "items": [GOOD, {**GOOD, "metadata": {"name": "A"}}]})
    assert result.exit_code == 1
    assert result.stdout == "resourceclaim.resource.k8s.io/one is valid\n"
    assert "document 1, items[1]: ResourceClaim.resource.k8s.io" in result.stderr


def test_kinds_without_python_types() -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web", "ports": [{"containerPort": 0}]}]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    result = run(deployment)
    assert result.exit_code == 1
    assert (
        'Deployment.apps "web" is invalid: spec.template.spec.containers[0].ports[0].containerPort: Required value'
        in result.stderr
    )


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "lamps.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "lamps", "kind": "Lamp"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red"]}}}
                        },
                    }
                },
            }
        ],
    },
}


def _lamp(colour: str) -> dict[str, object]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Lamp",
        "metadata": {"name": colour},
        "spec": {"colour": colour},
    }


def test_custom_resources_are_checked_by_a_definition_among_the_manifests() -> None:
    result = run(_lamp("red"), _lamp("blue"), DEFINITION)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "lamp.example.com/red is valid",
        "customresourcedefinition.apiextensions.k8s.io/lamps.example.com is valid",
    ]
    assert 'spec.colour: Unsupported value: "blue": supported values: "red"' in result.stderr


def test_without_its_definition_a_custom_resource_is_unknown() -> None:
    result = run(_lamp("red"))
    assert result.exit_code == 1
    assert "unknown kind Lamp in example.com/v1" in result.stderr


QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "ClusterQueue",
    "metadata": {"name": "team"},
    "spec": {
        "namespaceSelector": {},
        "resourceGroups": [
            {
                "coveredResources": ["gpus"],
                "flavors": [{"name": "default", "resources": [{"name": "gpus", "nominalQuota": "4"}]}],
            }
        ],
    },
}
CONFIGURATION = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "resources": {"deviceClassMappings": [{"name": "gpus", "deviceClassNames": ["gpu.example.com"]}]},
}
REPEATED = {
    **CONFIGURATION,
    "resources": {
        "deviceClassMappings": [
            {"name": name, "deviceClassNames": ["gpu.example.com"]} for name in ("gpus", "accelerators")
        ]
    },
}


def config_map(content: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-controller-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": json.dumps(content)},
    }


def test_objects_of_kueue() -> None:
    result = run(QUEUE)
    assert (result.exit_code, result.stdout) == (0, "clusterqueue.kueue.x-k8s.io/team is valid\n"), result.output
    groups = [{**QUEUE["spec"]["resourceGroups"][0], "coveredResources": ["gpus", "cpu"]}]  # type: ignore[index]
    result = run({**QUEUE, "spec": {**QUEUE["spec"], "resourceGroups": groups}})  # type: ignore[dict-item]
    assert result.exit_code == 1
    assert "flavors must have the same number of resources as the coveredResources" in result.stderr


@pytest.mark.parametrize("wrap", [lambda document: document, config_map], ids=["configuration", "config-map"])
def test_configurations_of_kueue(wrap: Callable[[object], object]) -> None:
    result = run(wrap(CONFIGURATION))
    assert result.exit_code == 0, result.output
    assert "is valid" in result.stdout
    result = run(wrap(REPEATED))
    assert result.exit_code == 1
    assert "deviceClassMappings" in result.stderr
    assert "gpu.example.com" in result.stderr


def test_other_config_maps_are_no_configurations() -> None:
    other = {**config_map(REPEATED), "metadata": {"name": "other"}}
    assert run(other).exit_code == 0


def test_what_depends_on_the_rest_of_a_cluster_is_not_checked() -> None:
    spec = {"containers": [{"name": "c", "image": "x"}], "priorityClassName": "absent", "runtimeClassName": "absent"}
    result = run({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "absent"}, "spec": spec})
    assert (result.exit_code, result.stdout) == (0, "pod/p is valid\n"), result.stderr
