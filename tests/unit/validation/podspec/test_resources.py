"""Amounts of resources of containers and pods."""

from typing import Any

import pytest

from tests.unit.validation.podspec import specs


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {
                "containers": [
                    {"name": "c", "image": "x", "resources": {"requests": {"cpu": "-1"}, "limits": {"cpu": "-2"}}}
                ]
            },
            [
                'spec.containers[0].resources.limits[cpu]: Invalid value: "-2": must be greater than or equal to 0',
                ('spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
                (
                    'spec.containers[0].resources.requests: Invalid value: "-1": must be less than or equal to '
                    "cpu limit of -2"
                ),
            ],
            id="containers-0-resources-limits-cpu-invalid-value",
        ),
        pytest.param(
            {
                "containers": [
                    {"name": "c", "image": "x", "resources": {"requests": {"bogus": "1"}, "limits": {"bogus": "2"}}}
                ]
            },
            [
                (
                    'spec.containers[0].resources.limits[bogus]: Invalid value: "bogus": must be a standard '
                    "resource type or fully qualified"
                ),
                (
                    'spec.containers[0].resources.limits[bogus]: Invalid value: "bogus": must be a standard '
                    "resource for containers"
                ),
                (
                    'spec.containers[0].resources.requests[bogus]: Invalid value: "bogus": must be a standard '
                    "resource type or fully qualified"
                ),
                (
                    'spec.containers[0].resources.requests[bogus]: Invalid value: "bogus": must be a standard '
                    "resource for containers"
                ),
            ],
            id="containers-0-resources-limits-bogus-invalid-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"example.com/gpu": "1"}}}]},
            [
                (
                    "spec.containers[0].resources.limits: Required value: Limit must be set for non "
                    "overcommitable resources"
                )
            ],
            id="containers-0-resources-limits-required-value",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}},
                    }
                ]
            },
            [
                (
                    'spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.com/gpu '
                    "limit of 2"
                )
            ],
            id="containers-0-resources-requests-invalid-value",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "resources": {"requests": {"example.com/gpu": "1500m"}, "limits": {"example.com/gpu": "1500m"}},
                    }
                ]
            },
            [
                'spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer',
                'spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "1500m": must be an integer',
            ],
            id="containers-0-resources-limits-example-com-gpu-invalid-value",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "resources": {
                            "requests": {"requests.example.com/gpu": "1"},
                            "limits": {"requests.example.com/gpu": "1"},
                        },
                    }
                ]
            },
            [
                (
                    "spec.containers[0].resources.limits[requests.example.com/gpu]: Invalid value: "
                    '"requests.example.com/gpu": doesn\'t follow extended resource name standard'
                ),
                (
                    "spec.containers[0].resources.requests[requests.example.com/gpu]: Invalid value: "
                    '"requests.example.com/gpu": doesn\'t follow extended resource name standard'
                ),
            ],
            id="containers-0-resources-limits-requests-example-com-gpu-invalid-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"a b": "1"}}}]},
            [
                (
                    'spec.containers[0].resources.requests[a b]: Invalid value: "a b": name part must consist of '
                    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                (
                    'spec.containers[0].resources.requests[a b]: Invalid value: "a b": must be a standard '
                    "resource for containers"
                ),
            ],
            id="containers-0-resources-requests-a-b-invalid-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"example.com/": "1"}}}]},
            [
                (
                    'spec.containers[0].resources.requests[example.com/]: Invalid value: "example.com/": name '
                    "part must be non-empty"
                ),
                (
                    'spec.containers[0].resources.requests[example.com/]: Invalid value: "example.com/": name '
                    "part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
                    "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
                    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                (
                    'spec.containers[0].resources.requests[example.com/]: Invalid value: "example.com/": '
                    "doesn't follow extended resource name standard"
                ),
                (
                    "spec.containers[0].resources.limits: Required value: Limit must be set for non "
                    "overcommitable resources"
                ),
            ],
            id="containers-0-resources-requests-example-com-invalid-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"pods": "1"}}}]},
            [
                (
                    'spec.containers[0].resources.requests[pods]: Invalid value: "pods": must be a standard '
                    "resource for containers"
                )
            ],
            id="containers-0-resources-requests-pods-invalid-value",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"storage": "1"}}}]},
            [
                (
                    'spec.containers[0].resources.requests[storage]: Invalid value: "storage": must be a '
                    "standard resource for containers"
                )
            ],
            id="containers-0-resources-requests-storage-invalid-value",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "resources": {"requests": {"hugepages-2Mi": "4Mi"}, "limits": {"hugepages-2Mi": "4Mi"}},
                    }
                ]
            },
            ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
            id="containers-0-resources-forbidden",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "resources": {
                            "requests": {"hugepages-2Mi": "3Mi", "cpu": "1"},
                            "limits": {"hugepages-2Mi": "3Mi"},
                        },
                    }
                ]
            },
            [
                (
                    'spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not '
                    "positive integer multiple of hugepages-2Mi"
                ),
                (
                    'spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not '
                    "positive integer multiple of hugepages-2Mi"
                ),
            ],
            id="containers-0-resources-limits-hugepages-2mi-invalid-value",
        ),
        pytest.param(
            {
                "containers": [
                    {"name": "c", "image": "x", "resources": {"requests": {"hugepages-2Mi": "4Mi", "cpu": "1"}}}
                ]
            },
            [
                (
                    "spec.containers[0].resources.limits: Required value: Limit must be set for non "
                    "overcommitable resources"
                )
            ],
            id="containers-0-resources-limits-required-value-2",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"": "1"}}}]},
            [
                'spec.containers[0].resources.requests[]: Invalid value: "": name part must be non-empty',
                (
                    'spec.containers[0].resources.requests[]: Invalid value: "": name part must consist of '
                    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
                (
                    'spec.containers[0].resources.requests[]: Invalid value: "": must be a standard resource for '
                    "containers"
                ),
            ],
            id="containers-0-resources-requests-invalid-value-2",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}},
            ['spec.resources.requests: Invalid value: "3": must be less than or equal to cpu limit of 2'],
            id="resources-requests-invalid-value",
        ),
        pytest.param(
            {"resources": {"requests": {"example.com/gpu": "1"}}},
            [
                (
                    'spec.resources.requests[example.com/gpu]: Unsupported value: "example.com/gpu": supported '
                    'values: "cpu", "hugepages-", "memory"'
                ),
                "spec.resources.limits: Required value: Limit must be set for non overcommitable resources",
            ],
            id="resources-requests-example-com-gpu-unsupported-value",
        ),
        pytest.param(
            {
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}],
                "resources": {"requests": {"cpu": "1"}},
            },
            [
                (
                    'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to '
                    "aggregate container requests of 2"
                )
            ],
            id="resources-requests-cpu-invalid-value",
        ),
        pytest.param(
            {
                "containers": [
                    {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "2"}}}
                ],
                "resources": {"limits": {"cpu": "1"}},
            },
            [
                (
                    'spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to '
                    "pod limits of 1"
                )
            ],
            id="resources-containers-0-cpu-limits-invalid-value",
        ),
        pytest.param(
            {"resources": {"claims": [{"name": "r"}]}},
            [
                "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level",
                (
                    'spec.resources.claims[0]: Not found: "r": must be one of the names in '
                    "pod.spec.resourceClaims which is empty"
                ),
            ],
            id="resources-claims-forbidden",
        ),
    ],
)
def test_refused(fields: dict[str, Any], want: list[str]) -> None:
    found = specs.errors(**fields)
    assert found == want
