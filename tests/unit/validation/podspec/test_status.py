"""What the status of a pod may say."""

from typing import Any

import pytest

from drachma.validation.podspec import status

ENDED = {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]}
RUNNING = {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}


@pytest.mark.parametrize(
    ("old", "new", "spec", "want"),
    [
        pytest.param({}, {"conditions": [{"type": "Ready", "status": "True"}]}, {}, [], id="a-condition"),
        pytest.param(
            {},
            {"conditions": [{"type": "a b", "observedGeneration": -1}]},
            {},
            [
                "status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
                (
                    'status.conditions[0].Type: Invalid value: "a b": name part must consist of alphanumeric '
                    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
            ],
            id="a-bad-condition",
        ),
        pytest.param(
            {"qosClass": "BestEffort"},
            {"qosClass": "Guaranteed"},
            {},
            ['status.qosClass: Invalid value: "Guaranteed": field is immutable'],
            id="another-quality",
        ),
        pytest.param(
            {},
            {"nominatedNodeName": "n2"},
            {"nodeName": "n1"},
            ["status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"],
            id="a-nomination-too-late",
        ),
        pytest.param(
            ENDED,
            RUNNING,
            {"restartPolicy": "Never", "containers": [{"name": "c"}]},
            ["status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"],
            id="ended-for-good",
        ),
        pytest.param(ENDED, RUNNING, {"restartPolicy": "Always", "containers": [{"name": "c"}]}, [], id="restarted"),
        pytest.param(
            {},
            {"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]},
            {},
            [
                (
                    'status.podIPs: Invalid value: [{"IP":"1.2.3.4"},{"IP":"1.2.3.5"}]: may specify no more than '
                    "one IP for each IP family"
                ),
            ],
            id="two-addresses-of-a-family",
        ),
        pytest.param(
            {},
            {"hostIP": "1.1.1.1", "hostIPs": [{"ip": "1.1.1.2"}]},
            {},
            ['status.hostIPs[0].ip: Invalid value: "1.1.1.2": must be equal to `hostIP`'],
            id="two-hosts",
        ),
        pytest.param(
            {},
            {"podIP": "010.0.0.1", "podIPs": [{"ip": "010.0.0.1"}]},
            {},
            ['status.podIPs[0]: Invalid value: "010.0.0.1": must not have leading 0s'],
            id="octal",
        ),
    ],
)
def test_status(old: dict[str, Any], new: dict[str, Any], spec: dict[str, Any], want: list[str]) -> None:
    found = [str(error) for error in (*status.check(new, old, spec=spec), *status.check_addresses(new, old))]
    assert found == want
