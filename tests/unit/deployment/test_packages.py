"""The kustomize bases and the Helm chart as files: they have what ``drachma manifests`` prints.

The chart is rendered by helm in tests/cluster/test_chart.py; here its parts are compared that need no helm.
"""

import json
import pathlib
import re
from typing import Any

import pytest
import yaml

import drachma
from drachma import deployment
from drachma.controllers import descriptors
from drachma.deployment import components
from drachma.process import webhookdeployment

Document = dict[str, Any]

DEPLOY = pathlib.Path(__file__).parents[3] / "deploy"
CHART = DEPLOY / "chart"
COMPONENTS = {
    "autoscaler": components.autoscaler(command="node-provider"),
    "dashboard": components.dashboard(),
    "exporter": components.exporter(),
    "node": components.node(),
    "queueing": components.queueing(),
    "queueing-webhooks": components.queueing(
        components.Webhooks(
            secret=webhookdeployment.SECRET,
            service=webhookdeployment.service("drachma-system").text,
            documents=webhookdeployment.documents("drachma-system"),
        )
    ),
    "scheduler": components.scheduler("drachma-scheduler"),
}


def _documents(name: str) -> list[Document]:
    return deployment.documents([COMPONENTS[name]], deployment.Settings(image="drachma"))


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_base_has_the_printed_objects(name: str) -> None:
    folder = DEPLOY / "kustomize" / name
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    stored = [each for file in kustomization["resources"] for each in yaml.safe_load_all((folder / file).read_text())]
    arguments = name.replace("-", " --")
    remedy = f"write it anew: drachma manifests {arguments} --image drachma > deploy/kustomize/{name}/objects.yaml"
    assert stored == _documents(name), remedy


@pytest.mark.parametrize("name", ["autoscaler", "dashboard", "exporter", "node", "queueing"])
def test_the_chart_has_the_permissions_of_a_component(name: str) -> None:
    proxy = components.Proxy(user_header="X-User", networks=("10.0.0.0/8",))
    optional = {"dashboard": components.dashboard(proxy=proxy), "node": components.node(driver_image="driver")}
    component = optional.get(name, COMPONENTS[name])
    documents = deployment.documents([component], deployment.Settings(image="drachma"))
    [role] = [each for each in documents if each["kind"] == "ClusterRole"]
    assert yaml.safe_load((CHART / "roles" / f"{name}.yaml").read_text()) == role["rules"]


@pytest.mark.parametrize("sort", ["Mutating", "Validating"])
def test_the_chart_has_the_webhooks_of_queueing(sort: str) -> None:
    documents = webhookdeployment.documents("drachma-system", b"authority")
    [configuration] = [each for each in documents if each["kind"] == f"{sort}WebhookConfiguration"]
    stored = yaml.safe_load((CHART / "webhooks" / f"{sort.lower()}.yaml").read_text())
    for webhook in configuration["webhooks"]:
        webhook["clientConfig"]["caBundle"] = ""
    assert stored == configuration["webhooks"]


def test_the_chart_knows_the_account_of_every_controller() -> None:
    accounts = yaml.safe_load((CHART / "roles" / "accounts.yaml").read_text())
    assert accounts == {each.name: each.account or each.name for each in descriptors.ALL}


def test_the_chart_has_the_version_of_the_package() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (drachma.__version__, drachma.__version__)


def test_every_value_has_a_schema_and_is_used() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    templates = "".join(file.read_text() for file in (CHART / "templates").iterdir())
    types = {str: "string", bool: "boolean", int: "integer", list: "array", dict: "object"}

    def check(values: Document, schema: Document, path: str) -> None:
        assert schema["additionalProperties"] is False, path
        assert values.keys() == schema["properties"].keys() - {"global"}, path
        for name, value in values.items():
            assert schema["properties"][name]["type"] == types[type(value)], f"{path}.{name}"
            assert re.search(rf"\.{name}\b", templates), f"{path}.{name} is not used"
            if isinstance(value, dict):
                check(value, schema["properties"][name], f"{path}.{name}")

    check(values, schema, "values")


def test_every_value_is_documented() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    for above, line in zip(["", *lines], lines, strict=False):
        if re.match(r"\w+:", line):
            assert above.startswith("# "), line
