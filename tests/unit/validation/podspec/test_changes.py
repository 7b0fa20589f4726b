"""What may change in the spec of a pod that exists."""

from typing import Any

import pytest

from drachma.validation.podspec import changes

FORBIDDEN = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
CONTAINER = {"name": "c", "image": "x"}
TERM = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}


def _affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def _spec(**fields: Any) -> dict[str, Any]:
    return {"containers": [CONTAINER], "terminationGracePeriodSeconds": 30, **fields}


GATED = {"schedulingGates": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "y"}}


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({}, {"containers": [{"name": "c", "image": "y"}]}, [], id="another-image"),
        pytest.param({}, {"containers": [{"name": "d", "image": "x"}]}, [FORBIDDEN], id="another-name"),
        pytest.param(
            {},
            {"containers": [CONTAINER, {"name": "d", "image": "x"}]},
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
            id="another-container",
        ),
        pytest.param({}, {"activeDeadlineSeconds": 5}, [], id="a-deadline"),
        pytest.param(
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 6},
            ["spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"],
            id="a-later-deadline",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 5},
            {},
            ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"],
            id="no-deadline-any-more",
        ),
        pytest.param({}, {"tolerations": [{"key": "k", "operator": "Exists"}]}, [], id="another-toleration"),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Exists"}]},
            {"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}]},
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
            id="a-changed-toleration",
        ),
        pytest.param({}, {"terminationGracePeriodSeconds": 5}, [FORBIDDEN], id="less-grace"),
        pytest.param(
            {"terminationGracePeriodSeconds": -1},
            {"terminationGracePeriodSeconds": 1},
            [],
            id="grace-that-was-negative",
        ),
        pytest.param({}, {"nodeName": "n"}, [FORBIDDEN], id="a-node"),
        pytest.param(GATED, {**GATED, "schedulingGates": [{"name": "b"}]}, [], id="one-gate-less"),
        pytest.param(
            GATED,
            {**GATED, "schedulingGates": [{"name": "a"}, {"name": "c"}]},
            [
                "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'c'",
            ],
            id="another-gate",
        ),
        pytest.param(GATED, {**GATED, "nodeSelector": {"x": "y", "z": "w"}}, [], id="fewer-nodes-while-gated"),
        pytest.param(
            GATED,
            {**GATED, "nodeSelector": {"x": "q"}},
            [
                (
                    'spec.nodeSelector: Invalid value: {"x":"q"}: only additions to spec.nodeSelector are '
                    "allowed (no mutations or deletions)"
                )
            ],
            id="other-nodes-while-gated",
        ),
        pytest.param({}, {"nodeSelector": {"x": "q"}}, [FORBIDDEN], id="fewer-nodes-without-gates"),
        pytest.param(GATED, {**GATED, "affinity": _affinity(TERM)}, [], id="affinity-while-gated"),
        pytest.param(
            {**GATED, "affinity": _affinity(TERM)},
            {**GATED, "affinity": _affinity(TERM, TERM)},
            [
                (
                    ""
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: "
                    "Invalid value: "
                    '[{"MatchExpressions":[{"Key":"a","Operator":"In","Values":["b"]}],"MatchFields":null},{"MatchE'
                    'xpressions":[{"Key":"a","Operator":"In","Values":["b"]}],"MatchFields":null}]: no '
                    "additions/deletions to non-empty NodeSelectorTerms list are allowed"
                ),
            ],
            id="more-terms-while-gated",
        ),
        pytest.param(
            {**GATED, "affinity": _affinity(TERM)},
            {**GATED, "affinity": _affinity({"matchExpressions": [{"key": "q", "operator": "Exists"}]})},
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
                    ": Invalid value: "
                    '{"MatchExpressions":[{"Key":"q","Operator":"Exists","Values":null}],"MatchFields":null}: '
                    "only additions are allowed (no mutations or deletions)"
                ),
            ],
            id="another-term-while-gated",
        ),
    ],
)
def test_changes(old: dict[str, Any], new: dict[str, Any], want: list[str]) -> None:
    errors = [str(error) for error in changes.check(_spec(**new), _spec(**old))]
    assert [error.partition("\n")[0] for error in errors] == want


def test_a_refusal_shows_the_difference_in_the_form_of_internal_types() -> None:
    new = _spec(
        containers=[{**CONTAINER, "image": "y", "env": [{"name": "A", "value": "1"}]}], tolerations=[{"key": "k"}]
    )
    (error,) = changes.check(new, _spec())
    assert str(error) == (
        f"{FORBIDDEN}\n"
        "@@ -10,7 +10,13 @@\n"
        '    "WorkingDir": "",\n'
        '    "Ports": null,\n'
        '    "EnvFrom": null,\n'
        '-   "Env": null,\n'
        '+   "Env": [\n'
        "+    {\n"
        '+     "Name": "A",\n'
        '+     "Value": "1",\n'
        '+     "ValueFrom": null\n'
        "+    }\n"
        "+   ],\n"
        '    "Resources": {\n'
        '     "Limits": null,\n'
        '     "Requests": null,\n'
    ), "the image and the toleration may change, and are not shown"


def test_a_changed_ephemeral_container_is_shown() -> None:
    old, new = ({"ephemeralContainers": [{"name": "debug", "image": image}]} for image in ("a", "b"))
    (error,) = changes.check_ephemeral_containers(new, old, {})
    assert str(error).startswith(
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be changed\n'
        "@@ -1,6 +1,6 @@\n"
    )
    assert '\n- "Image": "a",\n+ "Image": "b",\n' in str(error)
