"""Names and addresses that pods have or use."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"restartPolicy": "Bogus"},
            ['spec.restartPolicy: Unsupported value: "Bogus": supported values: "Always", "OnFailure", "Never"'],
            id="restart-policy-unsupported-value",
        ),
        pytest.param(
            {"dnsPolicy": "Bogus"},
            [
                (
                    'spec.dnsPolicy: Unsupported value: "Bogus": supported values: "ClusterFirstWithHostNet", '
                    '"ClusterFirst", "Default", "None"'
                )
            ],
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
                (
                    'spec.dnsConfig.nameservers[0]: Invalid value: "x": must be a valid IP address, (e.g. '
                    "10.9.8.7 or 2001:db8::ffff)"
                ),
                (
                    'spec.dnsConfig.searches[0]: Invalid value: "a b": a lowercase RFC 1123 subdomain must '
                    "consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with "
                    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                ),
                "spec.dnsConfig.options[0]: Required value: must not be empty",
            ],
            id="dns-config-nameservers-0-invalid-value",
        ),
        pytest.param(
            {"hostname": "Bad_", "subdomain": "Bad_"},
            [
                (
                    'spec.hostname: Invalid value: "Bad_": a lowercase RFC 1123 label must consist of lower case '
                    "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
                    "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                ),
                (
                    'spec.subdomain: Invalid value: "Bad_": a lowercase RFC 1123 label must consist of lower '
                    "case alphanumeric characters or '-', and must start and end with an alphanumeric character "
                    "(e.g. 'my-name',  or '123-abc', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                ),
            ],
            id="hostname-invalid-value",
        ),
        pytest.param(
            {"readinessGates": [{"conditionType": "a b"}]},
            [
                (
                    'spec.readinessGates[0].conditionType: Invalid value: "a b": name part must consist of '
                    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                )
            ],
            id="readiness-gates-0-condition-type-invalid-value",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "x", "hostnames": ["a b"]}]},
            [
                (
                    'spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or '
                    "2001:db8::ffff)"
                ),
                (
                    'spec.hostAliases[0].hostnames[0]: Invalid value: "a b": a lowercase RFC 1123 subdomain must '
                    "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
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
    assert found == want
