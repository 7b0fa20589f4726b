"""Permissions for writing and binding policies with parameters."""

from typing import Any

import pytest

from tests.unit.server import people
from tests.unit.server.admission import policies
from tests.unit.server.admission.policies import GROUP
from tests.unit.server.client import Client
from tests.unit.server.people import rule

POLICIES = f"/apis/{GROUP}/v1/validatingadmissionpolicies"
BINDINGS = f"/apis/{GROUP}/v1/validatingadmissionpolicybindings"
ANN = "&{ann  [staff system:authenticated] map[]}"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
WRITES = rule("create update patch", "validatingadmissionpolicies validatingadmissionpolicybindings", group=GROUP)


@pytest.fixture
async def admin() -> Client:
    server = await people.start()
    await people.grant(server, "ann", WRITES)
    return server


def policy(**kind: str) -> dict[str, Any]:
    constraints = {"resourceRules": [policies.rule("configmaps")]}
    spec = {"matchConstraints": constraints, "paramKind": kind, "validations": [{"expression": "true"}]}
    return {"metadata": {"name": "p"}, "spec": spec}


def binding(policy: str = "p", **reference: Any) -> dict[str, Any]:
    reference = {"parameterNotFoundAction": "Allow", **reference}
    return {
        "metadata": {"name": "b"},
        "spec": {"policyName": policy, "paramRef": reference, "validationActions": ["Deny"]},
    }


def detail(answer: Any) -> str:
    assert answer.code == 422, answer.body
    return str(answer.body["message"].partition(" is invalid: ")[2])


async def test_a_policys_author_reads_all_parameters(admin: Client) -> None:
    ann = admin.showing("ann")
    assert detail(await ann.call("POST", POLICIES, policy(**CONFIG_MAP))) == (
        f'spec.paramKind: Forbidden: user {ANN} must have "get" permission on all objects of the referenced paramKind '
        "(kind=ConfigMap, apiVersion=v1)"
    )
    await people.grant(admin, "ann", rule("get", "configmaps"), name="reads")
    assert (await ann.call("POST", POLICIES, policy(**CONFIG_MAP))).code == 201


async def test_who_changes_something_else_is_not_asked(admin: Client) -> None:
    await admin.call("POST", POLICIES, policy(**CONFIG_MAP))
    patch = {"spec": {"failurePolicy": "Ignore"}}
    changed = await admin.showing("ann").call("PATCH", f"{POLICIES}/p", patch, content_type=people.MERGE)
    assert changed.code == 200, changed.body


@pytest.mark.parametrize(
    ("reference", "verb"),
    [
        pytest.param({"name": "c", "namespace": "default"}, "get", id="one"),
        pytest.param({"selector": {"matchLabels": {"a": "b"}}}, "list", id="several"),
    ],
)
async def test_a_bindings_author_reads_what_it_refers_to(admin: Client, reference: dict[str, Any], verb: str) -> None:
    await admin.call("POST", POLICIES, policy(**CONFIG_MAP))
    ann = admin.showing("ann")
    assert detail(await ann.call("POST", BINDINGS, binding(**reference))) == (
        f'spec.paramRef: Forbidden: user {ANN} does not have "{verb}" permission on the object referenced by paramRef'
    )
    await people.grant(admin, "ann", rule(verb, "configmaps"), name="reads")
    assert (await ann.call("POST", BINDINGS, binding(**reference))).code == 201


async def test_where_the_kind_is_not_known_everything_must_be_readable(admin: Client) -> None:
    ann = admin.showing("ann")
    everything = f'user {ANN} does not have "get" permission for all groups, versions and resources'
    rest = f"determine minimum required permissions and {everything}"
    assert detail(await ann.call("POST", BINDINGS, binding(name="c"))) == (
        f"spec.paramRef: Forbidden: unable to get policy p to {rest}"
    )
    await admin.call("POST", POLICIES, policy(apiVersion="example.com/v1", kind="None"))
    assert detail(await ann.call("POST", BINDINGS, binding(name="c"))) == (
        f"spec.paramRef: Forbidden: unable to resolve paramKind &{{example.com/v1 None}} to {rest}"
    )
