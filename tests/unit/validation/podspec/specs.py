"""Pod specs for tests, with the defaults that rules rely on."""

from typing import Any

from drachma.validation.path import SPEC
from drachma.validation.podspec import spec as rules


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
