"""The policy in deploy/kueue-configuration-policy.yaml, on this API server."""

import pathlib
from collections.abc import AsyncIterator

import pytest
import yaml

from tests.unit.server import client
from tests.unit.server.client import Client

POLICY = pathlib.Path(__file__).parents[4] / "deploy" / "kueue-configuration-policy.yaml"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
MAPPINGS = """resources:
  deviceClassMappings:
  - name: example.com/whole-gpus
    deviceClassNames:
    - gpu.example.com
    - big-gpu.example.com
  - name: example.com/slices
    deviceClassNames:
    - mig.example.com
integrations:
  frameworks:
  - batch/job
  - pod
"""


@pytest.fixture
async def server() -> AsyncIterator[Client]:
    started = await client.start()
    policy, binding = yaml.safe_load_all(POLICY.read_text())
    for plural, document in (("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)):
        created = await started.call("POST", f"{REGISTRATION}/{plural}", document)
        assert created.code == 201, created.body
    await started.call("POST", "/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})
    yield started
    await started.app.close()
    await started.store.close()


async def _create(server: Client, text: str, *, name: str = "kueue-manager-config", field: str = "") -> str:
    """Return the refusal of a ConfigMap; empty if it is accepted."""
    document = {"metadata": {"name": name}, "data": {field or "controller_manager_config.yaml": text}}
    answer = await server.call("POST", "/api/v1/namespaces/kueue-system/configmaps?dryRun=All", document)
    return "" if answer.code == 201 else str(answer.body["message"])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEAD, id="no-mappings"),
        pytest.param(HEAD + MAPPINGS, id="mappings"),
        pytest.param(HEAD.replace("v1beta2", "v1beta1") + MAPPINGS, id="older-version"),
        pytest.param(HEAD + MAPPINGS.replace("\n    - ", "\n        - "), id="other-indentation"),
    ],
)
async def test_accepted(server: Client, text: str) -> None:
    for field in ("controller_manager_config.yaml", "config.yaml"):
        assert await _create(server, text, field=field) == ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(HEAD.replace("v1beta2", "v2") + MAPPINGS, "must have the apiVersion", id="version"),
        pytest.param(HEAD.replace("Configuration", "Config"), "must be of the kind Configuration", id="kind"),
        pytest.param(
            HEAD + MAPPINGS.replace("mig.example.com", "gpu.example.com"), "in several: gpu.example.com", id="class"
        ),
        pytest.param(
            HEAD + MAPPINGS.replace("example.com/slices", "example.com/whole-gpus"),
            "in several: example.com/whole-gpus",
            id="name",
        ),
        pytest.param(
            HEAD + MAPPINGS.replace("- name: example.com/slices\n    deviceClassNames", "- deviceClassNames"),
            "must have a name and deviceClassNames",
            id="no-name",
        ),
    ],
)
async def test_refused(server: Client, text: str, want: str) -> None:
    assert want in await _create(server, text)


async def test_other_objects_are_left_alone(server: Client) -> None:
    assert await _create(server, "nonsense", name="other") == ""
