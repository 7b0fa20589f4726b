"""Names and addresses that pods have or use."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"restartPolicy": "Bogus"},
            ['spec.restartPolicy: Unsupported value: "Bogus": supported values: "Always", "OnFailure", "Ne'],
            id="restart-policy-unsupported-value",
        ),
        pytest.param(
            {"dnsPolicy": "Bogus"},
            ['spec.dnsPolicy: Unsupported value: "Bogus": supported values: "ClusterFirstWithHostNet", "Cl'],
            id="dns-policy-unsupported-value",
        ),
        pytest.param(
            {"dnsPolicy": "None"},
            ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
            id="dns-config-required-value",
        ),
        pytest.param(
            {"dnsConfig": {"nameservers": ["x"], "searches": ["a b"], "options": [{}]}},
            [
                'spec.dnsConfig.nameservers[0]: Invalid value: "x": must be a valid IP address,',
                'spec.dnsConfig.searches[0]: Invalid value: "a b": a lowercase RFC 1123 subdomain must consis',
                "spec.dnsConfig.options[0]: Required value: must not be empty",
            ],
            id="dns-config-nameservers-0-invalid-value",
        ),
        pytest.param(
            {"hostname": "Bad_", "subdomain": "Bad_"},
            [
                'spec.hostname: Invalid value: "Bad_": a lowercase RFC 1123 label must consist of lower case',
                'spec.subdomain: Invalid value: "Bad_": a lowercase RFC 1123 label must consist of lower case',
            ],
            id="hostname-invalid-value",
        ),
        pytest.param(
            {"readinessGates": [{"conditionType": "a b"}]},
            ['spec.readinessGates[0].conditionType: Invalid value: "a b": name part must consist of alphan'],
            id="readiness-gates-0-condition-type-invalid-value",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "x", "hostnames": ["a b"]}]},
            [
                'spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address,',
                'spec.hostAliases[0].hostnames[0]: Invalid value: "a b": a lowercase RFC 1123 subdomain must',
            ],
            id="host-aliases-0-ip-invalid-value",
        ),
        pytest.param(
            {"os": {"name": "dos"}},
            ['spec.os: Unsupported value: "dos": supported values: "linux", "windows"'],
            id="os-unsupported-value",
        ),
        pytest.param(
            {"os": {}},
            ["spec.os.name: Required value"],
            id="os-name-required-value",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert len(found) == len(want), found
    assert all(error.startswith(start) for error, start in zip(found, want, strict=True)), found
