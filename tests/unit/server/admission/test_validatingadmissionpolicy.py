"""Validating admission policies, asked by a whole server."""

from typing import Any

import pytest

from drachma.server.access import authorization
from tests.unit.server import client
from tests.unit.server.admission.policies import CONFIG_MAPS, MERGE, bind, config_map, rule, validating

_NO = [{"expression": "false", "message": "no"}]


def _message(answer: client.Answer) -> str:
    return str(answer.body["message"]).partition(" denied request: ")[2]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"validations": [{"expression": "object.data.x == '1'"}]}, None, id="holds"),
        pytest.param(
            {"validations": [{"expression": " object.data.x != '1' "}]},
            "failed expression: object.data.x != '1'",
            id="expression-is-the-last-resort",
        ),
        pytest.param(
            {
                "variables": [
                    {"name": "x", "expression": "object.data.x"},
                    {"name": "y", "expression": "variables.x + '!'"},
                ],
                "validations": [{"expression": "false", "messageExpression": "variables.y"}],
            },
            "1!",
            id="variables-in-messages",
        ),
        pytest.param(
            {
                "variables": [{"name": "bad", "expression": "object.nope"}],
                "validations": [{"expression": "variables.bad == 1"}],
            },
            "expression 'variables.bad == 1' resulted in error: composited variable \"bad\" fails to evaluate: "
            "no such key: nope",
            id="variable-that-fails",
        ),
        pytest.param(
            {"matchConditions": [{"name": "never", "expression": "object.data.x == '2'"}], "validations": _NO},
            None,
            id="condition-does-not-hold",
        ),
        pytest.param(
            {"matchConditions": [{"name": "bad", "expression": "object.nope == 1"}], "validations": _NO},
            "expression 'object.nope == 1' resulted in error: no such key: nope",
            id="condition-fails",
        ),
        pytest.param(
            {
                "matchConditions": [{"name": "bad", "expression": "object.nope == 1"}],
                "validations": _NO,
                "failurePolicy": "Ignore",
            },
            None,
            id="condition-fails-and-is-ignored",
        ),
        pytest.param(
            {"validations": [{"expression": "object.nope == 1"}, {"expression": "false"}], "failurePolicy": "Ignore"},
            "failed expression: false",
            id="only-failures-are-ignored",
        ),
        pytest.param(
            {
                "validations": [
                    {
                        "expression": "false",
                        "messageExpression": "request.operation + ' ' + request.name + ' by ' "
                        "+ request.userInfo.username + ' in ' + namespaceObject.metadata.name",
                    }
                ]
            },
            "CREATE c by kubernetes-admin in default",
            id="request-and-namespace",
        ),
        pytest.param(
            {"auditAnnotations": [{"key": "k", "valueExpression": "string(object.nope)"}]},
            "expression 'string(object.nope)' resulted in error: no such key: nope",
            id="annotation-that-fails",
        ),
    ],
)
async def test_create(server: client.Client, spec: dict[str, Any], want: str | None) -> None:
    await validating(server, **spec)
    await bind(server)
    answer = await server.call("POST", CONFIG_MAPS, config_map(x="1"))
    if want is None:
        assert answer.code == 201
    else:
        assert (answer.code, _message(answer)) == (422, want)


@pytest.mark.parametrize(
    ("matching", "body", "code"),
    [
        pytest.param({}, config_map(), 422, id="everything"),
        pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, config_map(), 201, id="object-not-selected"),
        pytest.param(
            {"objectSelector": {"matchLabels": {"a": "b"}}}, config_map(labels={"a": "b"}), 422, id="object-selected"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}},
            config_map(),
            201,
            id="namespace-not-selected",
        ),
        pytest.param({"resourceRules": [rule("configmaps", scope="Cluster")]}, config_map(), 201, id="other-scope"),
        pytest.param({"resourceRules": [rule("configmaps", operations=["DELETE"])]}, config_map(), 201, id="other-op"),
        pytest.param({"resourceRules": [rule("configmaps/status")]}, config_map(), 201, id="other-subresource"),
        pytest.param({"resourceRules": [rule("*", groups=("*",))]}, config_map(), 422, id="wildcards"),
        pytest.param({"resourceRules": [rule("configmaps", resourceNames=["c"])]}, config_map("c"), 422, id="by-name"),
        pytest.param(
            {"resourceRules": [rule("configmaps", resourceNames=["c"])]}, config_map("d"), 201, id="other-name"
        ),
        pytest.param({"excludeResourceRules": [rule("configmaps")]}, config_map(), 201, id="excluded"),
    ],
)
async def test_matching(server: client.Client, matching: dict[str, Any], body: dict[str, Any], code: int) -> None:
    await validating(server, validations=_NO, matching=matching)
    await bind(server)
    assert (await server.call("POST", CONFIG_MAPS, body)).code == code


@pytest.mark.parametrize(
    ("policy", "code"), [pytest.param("Equivalent", 422, id="equivalent"), pytest.param("Exact", 201, id="exact")]
)
async def test_other_versions_are_equivalent(server: client.Client, policy: str, code: int) -> None:
    rules = [rule("resourceclaims", groups=("resource.k8s.io",), apiVersions=["v1beta1"])]
    condition = {"expression": "has(object.spec.devices.requests[0].exactly)", "message": "another version"}
    await validating(server, rules=rules, validations=[condition], matching={"matchPolicy": policy})
    await bind(server)
    answer = await server.call("POST", client.CLAIMS, client.claim())
    assert answer.code == code
    if code == 422:
        assert _message(answer) == "another version"


async def test_binding_narrows_a_policy_down(server: client.Client) -> None:
    await validating(server, validations=_NO)
    await bind(server, matchResources={"objectSelector": {"matchLabels": {"a": "b"}}})
    assert (await server.call("POST", CONFIG_MAPS, config_map("x"))).code == 201
    assert (await server.call("POST", CONFIG_MAPS, config_map("y", labels={"a": "b"}))).code == 422


async def test_policies_hold_as_soon_and_as_long_as_they_are_bound(server: client.Client) -> None:
    await validating(server, validations=_NO)
    assert (await server.call("POST", CONFIG_MAPS, config_map("a"))).code == 201
    await bind(server)
    assert (await server.call("POST", CONFIG_MAPS, config_map("b"))).code == 422
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/p"
    patch = {"spec": {"validations": [{"expression": "true"}]}}
    assert (await server.call("PATCH", path, patch, content_type=MERGE)).code == 200
    assert (await server.call("POST", CONFIG_MAPS, config_map("b"))).code == 201
    assert (await server.call("DELETE", path)).code == 200
    assert (await server.call("POST", CONFIG_MAPS, config_map("d"))).code == 201


async def test_warnings(server: client.Client) -> None:
    await validating(server, validations=_NO)
    await bind(server, validationActions=["Warn"])
    answer = await server.call("POST", CONFIG_MAPS, config_map())
    assert answer.code == 201
    assert answer.header("warning") == (
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no\""
    )


async def test_updates_and_deletions(server: client.Client) -> None:
    await server.call("POST", CONFIG_MAPS, config_map(x="1"))
    changed = {"expression": "request.operation == 'DELETE' || object.data.x == oldObject.data.x", "message": "fixed"}
    kept = {"expression": "request.operation != 'DELETE' || object == null && oldObject.data.x != '1'"}
    await validating(server, validations=[changed, {**kept, "message": "kept"}])
    await bind(server)
    path = f"{CONFIG_MAPS}/c"
    assert _message(await server.call("PATCH", path, {"data": {"x": "2"}}, content_type=MERGE)) == "fixed"
    assert _message(await server.call("DELETE", path)) == "kept"
    assert _message(await server.call("DELETE", CONFIG_MAPS)) == "kept"
    assert (await server.call("GET", path)).code == 200


async def test_a_generated_name_is_not_known_yet(server: client.Client) -> None:
    await validating(server, validations=[{"expression": "has(request.name)", "message": "no name"}])
    await bind(server)
    body = config_map()
    body["metadata"] = {"generateName": "gen-"}
    answer = await server.call("POST", CONFIG_MAPS, body)
    assert _message(answer) == "no name"
    assert answer.body["details"]["name"].startswith("gen-")


async def test_what_registers_admission_is_exempt(server: client.Client) -> None:
    await validating(server, rules=[rule("*", groups=("*",))], validations=_NO)
    await bind(server)
    base = "/apis/admissionregistration.k8s.io/v1"
    assert (await server.call("POST", CONFIG_MAPS, config_map())).code == 422
    assert (await server.call("DELETE", f"{base}/validatingadmissionpolicybindings/b")).code == 200


_AS_PARAMS = {
    "expression": "params == null || object.metadata.labels.x == params.data.x",
    "message": "not as in params",
}


class TestParams:
    """Parameters of policies."""

    async def _prepare(self, server: client.Client, ref: dict[str, Any] | None, **spec: Any) -> None:
        for name, value in (("one", "1"), ("two", "2")):
            await server.call("POST", CONFIG_MAPS, config_map(name, labels={"params": "yes"}, x=value))
        whole = {"validations": [_AS_PARAMS], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, **spec}
        await validating(server, rules=[rule("secrets")], **whole)
        given = {} if ref is None else {"paramRef": {"parameterNotFoundAction": "Deny", **ref}}
        await bind(server, "p", name="b", **given)

    async def _create(self, server: client.Client, value: str) -> client.Answer:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"x": value}}}
        return await server.call("POST", "/api/v1/namespaces/default/secrets", secret)

    async def test_by_name(self, server: client.Client) -> None:
        await self._prepare(server, {"name": "one"})
        assert _message(await self._create(server, "2")) == "not as in params"
        assert (await self._create(server, "1")).code == 201

    async def test_by_labels_each_counts(self, server: client.Client) -> None:
        await self._prepare(server, {"selector": {"matchLabels": {"params": "yes"}}})
        assert _message(await self._create(server, "1")) == "not as in params"

    async def test_none_given(self, server: client.Client) -> None:
        await self._prepare(server, None)
        assert (await self._create(server, "3")).code == 201

    @pytest.mark.parametrize(
        ("action", "want"),
        [
            pytest.param(
                "Deny",
                "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
                id="deny",
            ),
            pytest.param("Allow", "", id="allow"),
        ],
    )
    async def test_not_found(self, server: client.Client, action: str, want: str) -> None:
        await self._prepare(server, {"name": "nope", "parameterNotFoundAction": action})
        answer = await self._create(server, "1")
        assert (_message(answer) if answer.code != 201 else "") == want

    async def test_of_an_unknown_kind(self, server: client.Client) -> None:
        await self._prepare(server, {"name": "x"}, paramKind={"apiVersion": "example.com/v1", "kind": "Thing"})
        answer = await self._create(server, "1")
        assert answer.body["message"] == (
            "secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: "
            "failed to find resource referenced by paramKind: 'example.com/v1, Kind=Thing'"
        )


async def test_authorizer() -> None:
    asked: list[authorization.Attributes] = []

    class Ask(authorization.AlwaysAllow):
        def authorise(self, attributes: authorization.Attributes) -> authorization.Opinion:
            if attributes.verb != "approve":
                return authorization.ALLOWED
            asked.append(attributes)
            return authorization.Opinion(authorization.Decision.NO_OPINION, "ask somebody else")

    server = await client.start(authoriser=Ask())
    check = "authorizer.requestResource.check('approve')"
    await validating(server, validations=[{"expression": f"{check}.allowed()", "message": "not approved"}])
    await bind(server)
    answer = await server.call("POST", CONFIG_MAPS, config_map())
    assert _message(answer) == "not approved"
    # A decision that takes long on the event loop is made again in a thread.
    attributes, *_ = asked
    assert (attributes.resource, attributes.namespace, attributes.name) == ("configmaps", "default", "c")
    assert attributes.user.name == "kubernetes-admin"


async def test_binding_a_pod_is_a_creation(server: client.Client) -> None:
    await server.call("POST", client.PODS, client.pod())
    refused = {"expression": "object.target.name != 'bad'", "message": "bad node"}
    await validating(server, rules=[rule("pods/binding", operations=["CREATE"])], validations=[refused])
    await bind(server)
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "bad"}}
    answer = await server.call("POST", f"{client.PODS}/p/binding", body)
    assert _message(answer) == "bad node"
    body["target"] = {"kind": "Node", "name": "good"}
    assert (await server.call("POST", f"{client.PODS}/p/binding", body)).code == 201


async def test_evicting_a_pod_is_a_creation(server: client.Client) -> None:
    await server.call("POST", client.PODS, client.pod())
    await validating(server, rules=[rule("pods/eviction", operations=["CREATE"])], validations=_NO)
    await bind(server)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert _message(await server.call("POST", f"{client.PODS}/p/eviction", body)) == "no"
    assert (await server.call("DELETE", f"{client.PODS}/p")).code == 200


async def test_a_costly_policy_ends(server: client.Client) -> None:
    nested = "true"
    for variable in "abcdefgh":
        nested = f"[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all({variable}, {nested})"
    await validating(server, validations=[{"expression": nested}])
    await bind(server)
    message = _message(await server.call("POST", CONFIG_MAPS, config_map()))
    assert message.endswith("resulted in error: operation cancelled: actual cost limit exceeded")
