"""Pod-level resources must cover the additions of claims."""

from collections.abc import Mapping

import pytest

from drachma.accounting import requests
from drachma.api import nodeallocatable, pod
from drachma.testing import pod as a_pod
from drachma.values import quantity


def amounts(stated: Mapping[str, str]) -> dict[str, quantity.Quantity]:
    return {name: quantity.Quantity.parse(text) for name, text in stated.items()}


def resources(
    *, requests: Mapping[str, str] | None = None, limits: Mapping[str, str] | None = None
) -> pod.ResourceRequirements:
    return pod.ResourceRequirements(requests=amounts(requests or {}), limits=amounts(limits or {}))


def status(name: str, text: str) -> nodeallocatable.NodeAllocatableResourceClaimStatus:
    """Return the status of a claim that container "a" uses, with an amount of a resource."""
    mapped = nodeallocatable.NodeAllocatableMappedResource(name=name, amount=quantity.Quantity.parse(text))
    return nodeallocatable.NodeAllocatableResourceClaimStatus(
        resource_claim_name="c", containers=("a",), mapping=(mapped,)
    )


@pytest.mark.parametrize(
    ("whole", "container", "claim", "want"),
    [
        pytest.param(None, resources(requests={"cpu": "2"}), status("cpu", "9"), "", id="no-budget"),
        pytest.param(
            resources(requests={"cpu": "3"}), resources(requests={"cpu": "2"}), status("cpu", "1"), "", id="just-enough"
        ),
        pytest.param(
            resources(requests={"cpu": "3"}),
            resources(requests={"cpu": "2"}),
            status("cpu", "1001m"),
            "pod level request for cpu is insufficient to cover the aggregated container "
            "and node-allocatable DRA requests",
            id="requests",
        ),
        pytest.param(
            resources(requests={"cpu": "3"}),
            resources(),
            status("memory", "9Gi"),
            "",
            id="a-resource-without-a-budget",
        ),
        pytest.param(
            resources(limits={"hugepages-2Mi": "4Mi"}),
            resources(limits={"hugepages-2Mi": "2Mi"}),
            status("hugepages-2Mi", "4Mi"),
            "pod level limit for hugepages-2Mi is insufficient to cover the aggregated container "
            "and node-allocatable DRA limits",
            id="limits-of-huge-pages",
        ),
        pytest.param(
            resources(limits={"memory": "3Gi"}),
            resources(limits={"memory": "2Gi"}),
            status("memory", "2Gi"),
            "pod level limit for memory is insufficient to cover the limit and DRA overhead for container a",
            id="limit-of-a-container",
        ),
        pytest.param(
            resources(limits={"memory": "3Gi"}),
            resources(),
            status("memory", "9Gi"),
            "",
            id="a-container-without-a-limit",
        ),
    ],
)
def test_budget(
    whole: pod.ResourceRequirements | None,
    container: pod.ResourceRequirements,
    claim: nodeallocatable.NodeAllocatableResourceClaimStatus,
    want: str,
) -> None:
    budgeted = a_pod("p").spec(containers=(pod.Container(name="a", resources=container),), resources=whole).build()
    assert requests.budget_problem(budgeted, (claim,)) == want
    assert requests.budget_problem(budgeted, ()) == "", "without claims the API server has checked it"
