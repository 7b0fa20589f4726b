"""Messages about configurations, where they show values as Go's encoder does."""

from typing import Any

import pytest

from drachma.queueing.configuration import configrules, configuration, gates


def _messages(**parts: Any) -> list[str]:
    document = {"integrations": {"frameworks": ["batch/job"]}, **parts}
    return [str(each) for each in configrules.check(configuration.decode(document), gates=gates.DEFAULT)]


@pytest.mark.parametrize(
    ("curves", "want"),
    [
        pytest.param([23, 29, 4588], [], id="known"),
        pytest.param([4587, 4589], [], id="known-since-go-1.26"),
        pytest.param([0], ["curve preference 0 is out of range (must be 1-65535)"], id="out-of-range"),
        pytest.param([23, 29, 23], ["duplicate curve preference 23"], id="twice"),
        pytest.param([22, 0], ["curve preference 22 is not supported by the current Go version"], id="unknown"),
    ],
)
def test_curves_are_those_that_kueues_go_has(curves: list[int], want: list[str]) -> None:
    curve_list = ",".join(map(str, curves))
    head = f'tls: Invalid value: {{"curvePreferences":[{curve_list}]}}: invalid curve preferences: '

    assert _messages(tls={"curvePreferences": curves}) == [head + each for each in want]


def test_labels_of_metrics_are_shown_with_their_name_even_if_it_is_empty() -> None:
    label = {"sourceLabelKey": "a", "sourceAnnotationKey": "b"}

    messages = _messages(metrics={"customLabels": [label]})

    assert any('{"name":"","sourceLabelKey":"a","sourceAnnotationKey":"b"}' in each for each in messages)


def test_values_that_are_missing_are_shown_as_null() -> None:
    label = {"name": "team", "sourceKind": "Workload"}

    assert _messages(metrics={"customLabels": [label]}) == [
        "metrics.customLabels[0].trackedValues: Invalid value: null: must not be empty when sourceKind is 'Workload'"
    ]


def test_weights_are_shown_without_a_fraction_of_zero() -> None:
    sharing = {"usageHalfLifeTime": "1h", "usageSamplingInterval": "1m", "resourceWeights": {"cpu": -1, "memory": 0.5}}

    assert _messages(admissionFairSharing=sharing) == [
        (
            'admissionFairSharing.resourceWeights[cpu]: Invalid value: {"cpu":-1,"memory":0.5}: '
            "must be greater than or equal to 0"
        )
    ]
