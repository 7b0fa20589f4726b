"""Pod specs for tests, with the defaults that rules rely on."""

from typing import Any

from drachma.validation.path import SPEC
from drachma.validation.podspec import spec as rules

LABEL_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
"""Rule of upstream for the keys of labels."""
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
"""Rule of upstream for the values of labels."""


def container(**fields: Any) -> dict[str, Any]:
    """A container, good but for what is given."""
    return {"imagePullPolicy": "Always", "terminationMessagePolicy": "File", **fields}


def errors(*, is_pod: bool = True, **fields: Any) -> list[str]:
    """What is wrong with a spec that is good but for these fields."""
    spec = {
        "containers": [{"name": "c", "image": "x"}],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        **fields,
    }
    for field in ("containers", "initContainers"):
        spec[field] = [container(**each) for each in spec.get(field, ())]
    return list(dict.fromkeys(str(error) for error in rules.check(spec, SPEC, is_pod=is_pod)))
