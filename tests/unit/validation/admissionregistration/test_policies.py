"""Policies and their bindings."""

from typing import Any

import pytest

from drachma.validation.admissionregistration import policies

_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"], "scope": "*"}
_MATCH: dict[str, Any] = {
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "resourceRules": [_RULE],
}
_LABEL_KEY = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)


def _validating(**changes: Any) -> dict[str, Any]:
    return {"failurePolicy": "Fail", "matchConstraints": _MATCH, "validations": [{"expression": "true"}], **changes}


def _mutating(*mutations: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "failurePolicy": "Fail",
        "matchConstraints": _MATCH,
        "reinvocationPolicy": "Never",
        "mutations": list(mutations),
        **changes,
    }


def _errors(spec: dict[str, Any], **how: Any) -> list[str]:
    return [str(error) for error in policies.check_validating(spec, name="p", **how)]


def _rule(**changes: Any) -> dict[str, Any]:
    return _validating(matchConstraints={**_MATCH, "resourceRules": [{**_RULE, **changes}]})


_AT_RULE = "spec.matchConstraints.resourceRules[0]"


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(_validating(), [], id="good"),
        pytest.param(
            _validating(
                variables=[{"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a + 1"}],
                validations=[{"expression": "variables.b == 2", "messageExpression": "'x'"}],
            ),
            [],
            id="variables",
        ),
        pytest.param(
            _validating(validations=[{"expression": " ", "message": " "}]),
            [
                "spec.validations[0].expression: Required value: expression is not specified",
                'spec.validations[0].message: Invalid value: " ": must be non-empty if specified',
            ],
            id="blank",
        ),
        pytest.param(
            _validating(validations=[{"expression": "true", "message": "a\nb"}]),
            ['spec.validations[0].message: Invalid value: "a\\nb": must not contain line breaks'],
            id="message-of-two-lines",
        ),
        pytest.param(
            _validating(validations=[{"expression": "true", "messageExpression": "authorizer.path('/')"}]),
            [
                (
                    "spec.validations[0].messageExpression: Invalid value: \"authorizer.path('/')\": "
                    "compilation failed: "
                    "ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n"
                    " | authorizer.path('/')\n | ^"
                )
            ],
            id="messages-cannot-ask-the-authorizer",
        ),
        pytest.param(
            _validating(
                matchConditions=[{"name": "a", "expression": "true"}, {"name": "a", "expression": "params.x"}],
            ),
            [
                (
                    'spec.matchConditions[1].expression: Invalid value: "params.x": compilation failed: ERROR: '
                    "<input>:1:1: undeclared reference to 'params' (in container '')\n | params.x\n | ^"
                ),
                'spec.matchConditions[1].name: Duplicate value: "a"',
            ],
            id="match-conditions",
        ),
        pytest.param(
            _validating(auditAnnotations=[{"key": "a/b", "valueExpression": ""}] * 2),
            [
                f'spec.auditAnnotations[0].key: Invalid value: "p/a/b": {_LABEL_KEY}',
                "spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified",
                f'spec.auditAnnotations[1].key: Invalid value: "p/a/b": {_LABEL_KEY}',
                "spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified",
                'spec.auditAnnotations[1].key: Duplicate value: "a/b"',
            ],
            id="audit-annotations",
        ),
        pytest.param(
            _validating(paramKind={"apiVersion": "a/b/c", "kind": "Con fig"}),
            [
                'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
                (
                    'spec.paramKind.kind: Invalid value: "Con fig": may have mixed case, but should otherwise match: '
                    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                    "alphabetic "
                    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
                    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                ),
            ],
            id="param-kind",
        ),
        pytest.param(
            _validating(variables=[{"name": "in", "expression": ""}, {"name": "", "expression": "true"}]),
            [
                'spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier',
                "spec.variables[0].expression: Required value: expression is not specified",
                "spec.variables[1].name: Required value: name is not specified",
            ],
            id="names-of-variables",
        ),
        pytest.param(
            _rule(operations=["*", "CREATE", "LOOK"], apiGroups=[], apiVersions=["v1", ""], scope="Some"),
            [
                (
                    f'{_AT_RULE}.operations: Invalid value: ["*","CREATE","LOOK"]: '
                    "if '*' is present, must not specify other operations"
                ),
                (
                    f'{_AT_RULE}.operations[2]: Unsupported value: "LOOK": '
                    'supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"'
                ),
                f"{_AT_RULE}.apiGroups: Required value",
                f"{_AT_RULE}.apiVersions[1]: Required value",
                f'{_AT_RULE}.scope: Unsupported value: "Some": supported values: "*", "Cluster", "Namespaced"',
            ],
            id="rule",
        ),
        pytest.param(
            _rule(resources=["pods/*", "pods/status", "*/scale", "jobs/scale", "*", "nodes"], resourceNames=["a", "a"]),
            [
                f'{_AT_RULE}.resourceNames[1]: Duplicate value: "a"',
                (
                    f"{_AT_RULE}.resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, "
                    "must not specify pods/status"
                ),
                (
                    f"{_AT_RULE}.resources[3]: Invalid value: \"jobs/scale\": if '*/scale' is present, "
                    "must not specify jobs/scale"
                ),
                (
                    f'{_AT_RULE}.resources: Invalid value: ["pods/*","pods/status","*/scale","jobs/scale",'
                    '"*","nodes"]: '
                    "if '*' is present, must not specify other resources without subresources"
                ),
            ],
            id="resources-of-a-rule",
        ),
    ],
)
def test_validating(spec: dict[str, Any], want: list[str]) -> None:
    assert _errors(spec) == want


def test_a_stored_expression_may_use_more() -> None:
    spec = _validating(validations=[{"expression": "[1].includes(1)"}])
    assert len(_errors(spec)) == 1
    assert _errors(spec, old=spec) == []


def test_conditions_that_do_not_change_are_not_looked_at_again() -> None:
    spec = _validating(matchConditions=[{"name": "x", "expression": "nonsense"}])
    assert len(_errors(spec)) == 1
    assert _errors(spec, old=spec) == []
    assert len(_errors({**spec, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}, old=spec)) == 1


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"policyName": "p", "validationActions": ["Deny", "Audit"]}, [], id="good"),
        pytest.param(
            {}, ["spec.policyName: Required value", "spec.validationActions: Required value"], id="nothing-said"
        ),
        pytest.param(
            {"policyName": "p", "validationActions": ["Deny", "Warn", "Warn", "Shout"]},
            [
                'spec.validationActions[2]: Duplicate value: "Warn"',
                'spec.validationActions[3]: Unsupported value: "Shout": supported values: "Audit", "Deny", "Warn"',
                (
                    'spec.validationActions: Invalid value: ["Deny","Warn","Warn","Shout"]: must not contain both Deny '
                    "and Warn (repeating the same validation failure information in the API response and headers "
                    "serves "
                    "no purpose)"
                ),
            ],
            id="actions",
        ),
        pytest.param(
            {"policyName": "p", "validationActions": ["Deny"], "paramRef": {"name": "x", "selector": {}}},
            [
                "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.parameterNotFoundAction: Required value",
            ],
            id="param-ref-with-both",
        ),
        pytest.param(
            {"policyName": "p", "validationActions": ["Deny"], "paramRef": {"parameterNotFoundAction": "Deny"}},
            ["spec.paramRef: Required value: one of name or selector must be specified"],
            id="param-ref-with-neither",
        ),
    ],
)
def test_binding(spec: dict[str, Any], want: list[str]) -> None:
    assert [str(error) for error in policies.KINDS["ValidatingAdmissionPolicyBinding"].always({"spec": spec})] == want


def test_binding_of_a_mutating_policy_is_not_about_deletions() -> None:
    resources = {**_MATCH, "resourceRules": [{**_RULE, "operations": ["DELETE"]}]}
    (error,) = policies.KINDS["MutatingAdmissionPolicyBinding"].always(
        {"spec": {"policyName": "p", "matchResources": resources}}
    )
    assert str(error) == (
        'spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": '
        'supported values: "*", "CONNECT", "CREATE", "UPDATE"'
    )


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            _mutating({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}),
            [],
            id="apply-configuration",
        ),
        pytest.param(
            _mutating({"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/a'}]"}}),
            [],
            id="json-patch",
        ),
        pytest.param(
            _mutating(), ["spec.mutations: Required value: mutations must contain at least one item"], id="nothing"
        ),
        pytest.param(
            _mutating({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "object"}}),
            [
                (
                    'spec.mutations[0].applyConfiguration.expression: Invalid value: "object": '
                    "must evaluate to Object but got dyn"
                )
            ],
            id="wrong-type",
        ),
        pytest.param(
            _mutating(
                {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}},
                {"patchType": "Magic"},
                {},
                reinvocationPolicy="",
            ),
            [
                "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
                (
                    'spec.mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": '
                    "must not be specified when patchType is JSONPatch"
                ),
                (
                    'spec.mutations[1].patchType: Unsupported value: "Magic": '
                    'supported values: "ApplyConfiguration", "JSONPatch"'
                ),
                "spec.mutations[2].patchType: Required value",
                "spec.reinvocationPolicy: Required value",
            ],
            id="types-of-patches",
        ),
    ],
)
def test_mutating(spec: dict[str, Any], want: list[str]) -> None:
    assert [str(error) for error in policies.check_mutating(spec)] == want
