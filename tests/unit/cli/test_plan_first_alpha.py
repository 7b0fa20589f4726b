"""Plans and explanations of clusters whose drivers and claims are those of v1alpha2."""

import pathlib
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from drachma.cli.root import app
from drachma.structured import counterpart

DRIVER = "cards.example.com"
GROUP = "resource.k8s.io"

Document = dict[str, Any]


def alpha(kind: str, name: str, **content: Any) -> Document:
    return {"apiVersion": f"{GROUP}/v1alpha2", "kind": kind, "metadata": {"name": name}, **content}


def node(name: str) -> Document:
    status = {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def cards(on: str, memory: str) -> Document:
    resource = {"name": "card-0", "attributes": [{"name": "memory", "quantity": memory}]}
    spec = {"nodeName": on, "driverName": DRIVER, "namedResourcesWithAttributes": [resource]}
    return alpha("NodeResourceSlice", f"{on}-cards", spec=spec)


def pod(name: str) -> Document:
    entry = {"name": "card", "source": {"resourceClaimName": "my"}}
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "card"}]}}
    spec = {"containers": [container], "resourceClaims": [entry]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


REQUEST = {"driverName": DRIVER, "namedResourcesWithAttributes": {"selector": 'attributes["memory"] >= "32Gi"'}}
REFERENCE = {"apiGroup": GROUP, "kind": "ResourceClaimParameters", "name": "large"}
WISH = (
    alpha("ResourceClass", "cards", driverName=DRIVER, structuredParameters=True),
    alpha("ResourceClaimParameters", "large", requests=[REQUEST]),
    alpha("ResourceClaim", "my", spec={"resourceClassName": "cards", "parametersRef": REFERENCE}),
)


def group(*objects: Document) -> Document:
    spec = {"template": {"objects": list(objects)}}
    return {"apiVersion": "drachma.dev/v1", "kind": "NodeGroup", "metadata": {"name": "large"}, "spec": spec}


def run(folder: pathlib.Path, command: str, *documents: Document) -> tuple[int, str]:
    path = folder / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    outcome = CliRunner().invoke(app, [*command.split(), "-f", str(path)])
    return outcome.exit_code, outcome.stdout + outcome.stderr


def test_a_pod_goes_where_its_claim_can_be_had(tmp_path: pathlib.Path) -> None:
    cluster = [node("a"), cards("a", "16Gi"), node("b"), cards("b", "32Gi"), *WISH, pod("p")]
    code, told = run(tmp_path, "plan", *cluster)
    assert (code, told.splitlines()[0]) == (0, "pod default/p: on node b")


def test_a_plan_grows_a_group_whose_template_has_node_slices(tmp_path: pathlib.Path) -> None:
    larger = group(node("template"), cards("template", "64Gi"))
    code, told = run(tmp_path, "plan", node("a"), cards("a", "16Gi"), larger, *WISH, pod("p"))
    assert code == 0
    assert told.splitlines()[0] == "grow node group large by 1"


@pytest.mark.parametrize("command", ["explain pod p --verbose", "explain claim my"])
def test_an_explanation_names_resource_and_selector(tmp_path: pathlib.Path, command: str) -> None:
    code, told = run(tmp_path, command, node("a"), cards("a", "16Gi"), *WISH, pod("p"))
    assert code == 1
    assert "card-0" in told
    assert 'compareTo(quantity("32Gi")) >= 0' in told


def test_what_a_server_had_of_both_versions_is_there_once(tmp_path: pathlib.Path) -> None:
    """Two pods each want a card of the only one that there is."""
    device = {"name": "card-0", "capacity": {"memory": {"value": "32Gi"}}}
    pool = {"name": "a/v1alpha2", "generation": 1, "resourceSliceCount": 1}
    stand_in = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "a-cards-v1alpha2-0"},
        "spec": {"driver": DRIVER, "nodeName": "a", "pool": pool, "devices": [device]},
    }
    class_ = {"apiVersion": f"{GROUP}/v1", "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}}

    def v1_claim(name: str, **annotations: str) -> Document:
        request = {"name": "r", "exactly": {"deviceClassName": "any"}}
        metadata = {"name": name, "annotations": annotations}
        spec = {"devices": {"requests": [request]}}
        return {"apiVersion": f"{GROUP}/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}

    other = pod("q")
    other["spec"]["resourceClaims"] = [{"name": "card", "resourceClaimName": "new"}]
    claims = [v1_claim("my", **{counterpart.CLAIM: "u"}), v1_claim("new")]
    cluster = [node("a"), cards("a", "32Gi"), *WISH, stand_in, class_, *claims, pod("p"), other]
    code, told = run(tmp_path, "plan", *cluster)
    assert code == 1
    assert told.splitlines()[-1] == "1 of 2 pending pods would run, with no new node"
