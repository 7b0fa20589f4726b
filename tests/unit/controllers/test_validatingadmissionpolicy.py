"""Type checking of validating policies."""

from typing import Any

import pytest

from drachma.api import validatingadmissionpolicy
from drachma.controllers.validatingadmissionpolicy import PolicyStatusController
from tests.unit.controllers import worlds

Policy = validatingadmissionpolicy.ValidatingAdmissionPolicy


def _policy(*expressions: str, rule: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    rules = {
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["resourceclaims"],
        **(rule or {}),
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [rules]},
            "validations": [{"expression": each} for each in expressions],
            **spec,
        },
    }


async def _status(policy: dict[str, Any]) -> dict[str, Any]:
    async with worlds.world(PolicyStatusController) as world:
        await world.client.create_document(Policy, policy)
        await world.advance(1)
        document = await world.client.get_document(Policy, "p")
        status: dict[str, Any] = document["status"]
        return status


_CLAIM = "resource.k8s.io/v1, Kind=ResourceClaim"
_PARAMS = {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param(_policy("object.spec.devices.requests.size() > 0"), "", id="fits"),
        pytest.param(
            _policy("object.spec.nope == 1", "true"),
            f"{_CLAIM}: ERROR: <input>:1:12: undefined field 'nope'\n | object.spec.nope == 1\n | ...........^\n",
            id="no-such-field",
        ),
        pytest.param(
            _policy("object.metadata.name == 1"),
            f"{_CLAIM}: ERROR: <input>:1:22: found no matching overload for '_==_' applied to '(string, int)'\n"
            " | object.metadata.name == 1\n | .....................^\n",
            id="wrong-type",
        ),
        pytest.param(
            _policy("variables.x > 0", variables=[{"name": "x", "expression": "size(object.spec.devices.requests)"}]),
            "",
            id="variables-have-types",
        ),
        pytest.param(_policy("object.nope == 1", rule={"apiGroups": ["*"]}), "", id="wildcards-are-not-checked"),
        pytest.param(_policy("object.nope == 1", rule={"resources": ["things"]}), "", id="nor-what-is-not-served"),
        pytest.param(_policy("params.data.x == object.metadata.name", paramKind=_PARAMS), "", id="params"),
        pytest.param(
            _policy("params.nope == 1", paramKind=_PARAMS),
            f"{_CLAIM}: ERROR: <input>:1:7: undefined field 'nope'\n | params.nope == 1\n | ......^\n",
            id="params-have-types",
        ),
    ],
)
async def test_warnings(policy: dict[str, Any], want: str) -> None:
    status = await _status(policy)
    assert status["observedGeneration"] == 1
    warnings = {each["fieldRef"]: each["warning"] for each in status["typeChecking"].get("expressionWarnings", [])}
    assert warnings == ({"spec.validations[0].expression": want} if want else {})


async def test_several_kinds() -> None:
    rule = {"apiVersions": ["v1beta1", "v1"]}
    status = await _status(_policy("has(object.spec.devices.requests[0].exactly)", rule=rule))
    (warning,) = status["typeChecking"]["expressionWarnings"]
    assert warning["warning"].startswith("resource.k8s.io/v1beta1, Kind=ResourceClaim: ERROR")


async def test_a_new_generation_is_checked_anew() -> None:
    async with worlds.world(PolicyStatusController) as world:
        await world.client.create_document(Policy, _policy("object.spec.nope == 1"))
        await world.advance(1)
        document = await world.client.get_document(Policy, "p")
        document["spec"]["validations"] = [{"expression": "true"}]
        await world.client.update_document(Policy, document)
        await world.advance(1)
        document = await world.client.get_document(Policy, "p")
        assert document["status"] == {"observedGeneration": 2, "typeChecking": {}}
