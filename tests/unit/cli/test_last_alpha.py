"""``convert``, ``validate`` and ``allocate`` on manifests of v1alpha3, of all four kinds that it has."""

from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from drachma.cli import root

ALPHA, NEWEST = "resource.k8s.io/v1alpha3", "resource.k8s.io/v1"
DRIVER = "cards.example.com"
SELECTOR = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("32Gi")) >= 0'

Document = dict[str, Any]


def written(kind: str, name: str, version: str, spec: Document) -> Document:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def selectors(expression: str) -> list[Document]:
    return [{"cel": {"expression": expression}}]


def the_four(version: str) -> list[Document]:
    """The same objects in v1alpha3 and in v1."""
    is_newest = version == NEWEST
    wish = {"deviceClassName": "cards", "selectors": selectors(SELECTOR)}
    request = {"name": "card", "exactly": wish} if is_newest else {"name": "card", **wish}
    devices = []
    for name, memory in (("card-0", "16Gi"), ("card-1", "32Gi")):
        attributes = {"model": {"string": "T1000"}, "version": {"version": "1.2.3"}}
        capacity = {"memory": {"value": memory}} if is_newest else {"memory": memory}
        part = {"attributes": attributes, "capacity": capacity}
        devices.append({"name": name, **part} if is_newest else {"name": name, "basic": part})
    pool = {"name": "worker", "generation": 1, "resourceSliceCount": 1}
    published = {"driver": DRIVER, "nodeName": "worker", "pool": pool, "devices": devices}
    claim = {"devices": {"requests": [request]}}
    return [
        written("DeviceClass", "cards", version, {"selectors": selectors(f'device.driver == "{DRIVER}"')}),
        written("ResourceSlice", "worker-cards", version, published),
        written("ResourceClaim", "my", version, claim),
        written("ResourceClaimTemplate", "mine", version, {"spec": claim}),
    ]


def run(command: str, *documents: Document, arguments: tuple[str, ...] = ()) -> Result:
    return CliRunner().invoke(root.app, [command, "-f", "-", *arguments], input=yaml.safe_dump_all(documents))


@pytest.mark.parametrize(
    ("before", "after"), [pytest.param(ALPHA, NEWEST, id="to-v1"), pytest.param(NEWEST, ALPHA, id="from-v1")]
)
def test_convert(before: str, after: str) -> None:
    result = run("convert", *the_four(before), arguments=("--to", after))
    assert result.exit_code == 0, result.stderr
    assert list(yaml.safe_load_all(result.stdout)) == the_four(after)


def test_validate() -> None:
    result = run("validate", *the_four(ALPHA))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        "deviceclass.resource.k8s.io/cards is valid",
        "resourceslice.resource.k8s.io/worker-cards is valid",
        "resourceclaim.resource.k8s.io/my is valid",
        "resourceclaimtemplate.resource.k8s.io/mine is valid",
    ]


@pytest.mark.parametrize(
    ("kind", "path", "value", "want"),
    [
        pytest.param(0, "selectors", selectors("device."), "spec.selectors[0].cel.expression: Invalid", id="class"),
        pytest.param(1, "driver", "No!", "spec.driver: Invalid value", id="slice"),
        pytest.param(
            1,
            "devices",
            [{"name": "a", "basic": {"attributes": {"n": {"int": 1, "bool": True}}}}],
            "attributes[n]: Invalid value",
            id="device",
        ),
        pytest.param(
            1,
            "devices",
            [{"name": "a", "basic": {"capacity": {"memory": {"value": "1"}}}}],
            "quantities must match",
            id="capacity",
        ),
        pytest.param(
            2,
            "devices",
            {"requests": [{"name": "card"}]},
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
            id="claim",
        ),
        pytest.param(
            3,
            "spec",
            {"devices": {"requests": [{"name": "A!", "deviceClassName": "cards"}]}},
            "spec.spec.devices.requests[0].name: Invalid value",
            id="template",
        ),
    ],
)
def test_what_is_wrong_is_named(kind: int, path: str, value: Any, want: str) -> None:
    document = the_four(ALPHA)[kind]
    document["spec"][path] = value
    result = run("validate", document)
    assert result.exit_code == 1
    assert want in result.stdout + result.stderr


def test_allocate() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}}
    result = run("allocate", node, *the_four(ALPHA))
    assert result.exit_code == 0, result.stderr
    [claim] = yaml.safe_load_all(result.stdout)
    assert claim["apiVersion"] == ALPHA
    assert [each["device"] for each in claim["status"]["allocation"]["devices"]["results"]] == ["card-1"]
