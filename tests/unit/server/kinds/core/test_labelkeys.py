"""Selectors of new pods with label keys."""

from typing import Any

import pytest

from drachma.server.kinds.core import labelkeys

LABELS = {"app": "web", "hash": "1"}


def term(**fields: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **fields}


def expression(operator: str, key: str = "hash", value: str = "1") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": [value]}


def with_expressions(given: dict[str, Any], *expressions: dict[str, Any]) -> dict[str, Any]:
    return {**given, "labelSelector": {**given["labelSelector"], "matchExpressions": list(expressions)}}


MATCHING = term(matchLabelKeys=["hash"])
DIFFERING = term(mismatchLabelKeys=["hash"])


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(MATCHING, with_expressions(MATCHING, expression("In")), id="same-value"),
        pytest.param(DIFFERING, with_expressions(DIFFERING, expression("NotIn")), id="another-value"),
        pytest.param(term(matchLabelKeys=["none"]), term(matchLabelKeys=["none"]), id="label-that-the-pod-lacks"),
        pytest.param(
            {"topologyKey": "zone", "matchLabelKeys": ["hash"]},
            {"topologyKey": "zone", "matchLabelKeys": ["hash"]},
            id="no-selector",
        ),
    ],
)
@pytest.mark.parametrize("rules", ["podAffinity", "podAntiAffinity"])
def test_terms(given: dict[str, Any], want: dict[str, Any], rules: str) -> None:
    def spec(of: dict[str, Any]) -> dict[str, Any]:
        preferred = [{"weight": 1, "podAffinityTerm": of}]
        kinds = {
            "requiredDuringSchedulingIgnoredDuringExecution": [of],
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }
        return {"affinity": {"nodeAffinity": {}, rules: kinds}}

    assert labelkeys.merge_label_keys(spec(given), LABELS) == spec(want)


def test_constraints() -> None:
    given = {"topologySpreadConstraints": [MATCHING, term()]}
    want = {"topologySpreadConstraints": [with_expressions(MATCHING, expression("In")), term()]}
    assert labelkeys.merge_label_keys(given, LABELS) == want
    assert given["topologySpreadConstraints"][0] == MATCHING


def test_a_spec_without_keys_is_left_alone() -> None:
    given = {"containers": [], "topologySpreadConstraints": [term()]}
    assert labelkeys.merge_label_keys(given, LABELS) is given
