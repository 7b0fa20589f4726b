"""Objects of Kueue's API are converted before they are validated: no value of a wrong type makes that fail."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from drachma.server import status
from drachma.server.kinds.kueue import versionforms

OLDER = "kueue.x-k8s.io/v1beta1"
NEWER = versionforms.NEWER

WORKLOAD = {
    "apiVersion": OLDER,
    "kind": "Workload",
    "spec": {
        "priorityClassName": "high",
        "priorityClassSource": "scheduling.k8s.io/priorityclass",
        "priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"},
    },
    "status": {
        "accumulatedPastExexcutionTimeSeconds": 1,
        "admission": {
            "podSetAssignments": [
                {
                    "topologyAssignment": {
                        "levels": ["rack", "host"],
                        "domains": [{"values": ["r1", "h1"], "count": 1}, {"values": ["r1", "h2"], "count": 2}],
                        "slices": [
                            {
                                "domainCount": 2,
                                "podCounts": {"individual": [1, 2]},
                                "valuesPerLevel": [
                                    {"universal": "r1"},
                                    {"individual": {"prefix": "h", "suffix": "x", "roots": ["1", "2"]}},
                                ],
                            }
                        ],
                    }
                }
            ]
        },
    },
}
QUEUE = {
    "apiVersion": OLDER,
    "kind": "ClusterQueue",
    "spec": {"cohort": "all", "admissionChecks": ["a"], "flavorFungibility": {"whenCanBorrow": "Borrow"}},
    "status": {"flavorUsage": []},
}

values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a document."""
    found = [path] if path else []
    entries = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in entries:
        found += places(value, (*path, key))
    return found


def put(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    part: Any = changed
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return changed


@settings(max_examples=300, deadline=None)
@given(some.data())
def test_a_wrong_value_at_any_place_is_left_to_validation(data: some.DataObject) -> None:
    document = data.draw(some.sampled_from([WORKLOAD, QUEUE]))
    for _ in range(data.draw(some.integers(min_value=1, max_value=2))):
        document = put(document, data.draw(some.sampled_from(places(document))), data.draw(values))
    before = copy.deepcopy(document)
    for version in (OLDER, NEWER):
        try:
            converted = versionforms.VersionForms(str(document.get("kind"))).convert(document, version)
        except status.StatusError as error:
            assert error.document["code"] == 413  # noqa: PT017 - a count may be as large as it likes
        else:
            assert converted["apiVersion"] == version
    assert document == before
