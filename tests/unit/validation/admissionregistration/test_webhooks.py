"""Webhook configurations."""

from typing import Any

import pytest

from drachma.validation.admissionregistration import webhooks

_GOOD: dict[str, Any] = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://example.com/check"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
_URL = "; desired format: https://host[/path]"


def _errors(*hooks: dict[str, Any], stored: list[dict[str, Any]] | None = None) -> list[str]:
    return [str(error).removeprefix("webhooks[0].") for error in webhooks.check(hooks, old=stored)]


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({}, [], id="good"),
        pytest.param({"name": ""}, ["name: Required value"], id="no-name"),
        pytest.param(
            {"name": "a.b"},
            ['name: Invalid value: "a.b": should be a domain with at least three segments separated by dots'],
            id="short-name",
        ),
        pytest.param(
            {"sideEffects": None},
            ["sideEffects: Required value: must specify one of None, NoneOnDryRun"],
            id="no-side-effects",
        ),
        pytest.param(
            {"sideEffects": "Some"},
            ['sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
            id="side-effects",
        ),
        pytest.param(
            {"timeoutSeconds": 31},
            ["timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"],
            id="timeout",
        ),
        pytest.param(
            {"admissionReviewVersions": []},
            ["admissionReviewVersions: Required value: must specify one of v1, v1beta1"],
            id="no-versions",
        ),
        pytest.param(
            {"admissionReviewVersions": ["v2", "v2"]},
            [
                'admissionReviewVersions[1]: Invalid value: "v2": duplicate version',
                'admissionReviewVersions: Invalid value: ["v2","v2"]: must include at least one of v1, v1beta1',
            ],
            id="unknown-versions",
        ),
        pytest.param(
            {"clientConfig": {}},
            ["clientConfig: Required value: exactly one of url or service is required"],
            id="no-client",
        ),
        pytest.param(
            {"clientConfig": {"url": "http://u:p@example.com/x?q=1#f"}},
            [
                f"clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme{_URL}",
                'clientConfig.url: Invalid value: "u:p": user information is not permitted in the URL',
                'clientConfig.url: Invalid value: "f": fragments are not permitted in the URL',
                'clientConfig.url: Invalid value: "q=1": query parameters are not permitted in the URL',
            ],
            id="url",
        ),
        pytest.param(
            {"clientConfig": {"url": "https:///x"}},
            [f'clientConfig.url: Invalid value: "": host must be specified{_URL}'],
            id="url-without-host",
        ),
        pytest.param(
            {"clientConfig": {"service": {"name": "s", "namespace": "n", "port": 0, "path": "/a//b"}}},
            [
                (
                    "clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, "
                    "inclusive"
                ),
                'clientConfig.service.path: Invalid value: "/a//b": segment[1] may not be empty',
            ],
            id="service",
        ),
        pytest.param(
            {"matchConditions": [{"name": "x", "expression": "1"}]},
            ['matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int'],
            id="match-condition",
        ),
    ],
)
def test_webhook(changes: dict[str, Any], want: list[str]) -> None:
    assert _errors({**_GOOD, **changes}) == want


def test_names_are_unique() -> None:
    assert _errors(_GOOD, _GOOD) == ['webhooks[1].name: Duplicate value: "a.example.com"']


def test_what_was_stored_against_the_rules_may_stay() -> None:
    odd = {**_GOOD, "sideEffects": "Some", "admissionReviewVersions": ["v7"]}
    assert _errors(odd, odd, stored=[odd, odd]) == []
