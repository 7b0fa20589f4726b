"""Policies and webhooks that are too costly to compile on the event loop apply all the same."""

from drachma.bounds import effort
from tests.unit.server.client import Client

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
COSTLY = "'" + "x" * effort.LOOP_UNITS + "' == ''"
"""Expression that takes more effort to compile than a decision on the event loop may take."""


async def test_a_costly_policy_applies_from_the_first_request_on(server: Client) -> None:
    policy = {
        "metadata": {"name": "costly"},
        "spec": {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": COSTLY}]},
    }
    binding = {"metadata": {"name": "costly"}, "spec": {"policyName": "costly", "validationActions": ["Deny"]}}
    for plural, document in (("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)):
        created = await server.call("POST", f"{REGISTRATION}/{plural}", document)
        assert created.code == 201, created.body
    for name in ("first", "second"):
        answer = await server.call("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
        assert answer.code == 422, answer.body
        assert "ValidatingAdmissionPolicy 'costly'" in answer.body["message"]


async def test_a_webhook_with_a_costly_condition_applies_from_the_first_request_on(server: Client) -> None:
    webhook = {
        "name": "costly.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/refuse"},
        "rules": [RULE],
        "matchConditions": [{"name": "costly", "expression": f"!({COSTLY})"}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    document = {"metadata": {"name": "costly"}, "webhooks": [webhook]}
    created = await server.call("POST", f"{REGISTRATION}/validatingwebhookconfigurations", document)
    assert created.code == 201, created.body
    for name in ("first", "second"):
        answer = await server.call("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
        assert answer.code == 500, answer.body
        assert 'failed calling webhook "costly.example.com"' in answer.body["message"]
