"""Requests of pods: containers, init containers, sidecars, overhead, budgets and claims."""

from typing import Any

import pytest

from drachma.accounting import ledger, requests, resourcenames
from drachma.api import nodeallocatable, pod
from drachma.driver.devices import amount
from drachma.testing import pod as a_pod

GIB = 1024**3


def whole(**limits: str) -> pod.ResourceRequirements:
    return pod.ResourceRequirements(requests={name: amount(value) for name, value in limits.items()})


def added(claim: str = "c", *, containers: tuple[str, ...] = (), **mapped: str) -> Any:
    return nodeallocatable.NodeAllocatableResourceClaimStatus(
        resource_claim_name=claim,
        containers=containers,
        mapping=tuple(
            nodeallocatable.NodeAllocatableMappedResource(name=name, amount=amount(value))
            for name, value in mapped.items()
        ),
    )


def overhead(per_pod: str, per_container: str, *, containers: tuple[str, ...]) -> Any:
    return nodeallocatable.NodeAllocatableResourceClaimStatus(
        resource_claim_name="c",
        containers=containers,
        overhead=(
            nodeallocatable.NodeAllocatableOverheadResource(
                name="memory", per_pod=amount(per_pod), per_container=amount(per_container)
            ),
        ),
    )


@pytest.mark.parametrize(
    ("built", "claims", "want"),
    [
        pytest.param(
            a_pod("p").container("a", requests={"cpu": "1"}).container("b", requests={"cpu": "500m"}),
            (),
            {"cpu": 1500},
            id="containers-add-up",
        ),
        pytest.param(
            a_pod("p")
            .init_container("i", requests={"cpu": "3", "memory": "1Gi"})
            .container("a", requests={"cpu": "1", "memory": "2Gi"}),
            (),
            {"cpu": 3000, "memory": 2 * GIB},
            id="largest-init-container-counts",
        ),
        pytest.param(
            a_pod("p")
            .init_container("first", requests={"cpu": "2"})
            .init_container("sidecar", requests={"cpu": "1"}, restart_policy="Always")
            .init_container("second", requests={"cpu": "3"})
            .container("a", requests={"cpu": "1"}),
            (),
            {"cpu": 4000},
            id="sidecars-run-beside-later-init-containers",
        ),
        pytest.param(
            a_pod("p")
            .init_container("sidecar", requests={"cpu": "1"}, restart_policy="Always")
            .container("a", requests={"cpu": "2"}),
            (),
            {"cpu": 3000},
            id="sidecars-run-beside-containers",
        ),
        pytest.param(
            a_pod("p").container("a", requests={"cpu": "1"}).spec(overhead={"cpu": amount("250m")}),
            (),
            {"cpu": 1250},
            id="overhead-comes-on-top",
        ),
        pytest.param(
            a_pod("p").container("a", requests={"cpu": "1", "memory": "1Gi"}).spec(resources=whole(cpu="4")),
            (),
            {"cpu": 4000, "memory": GIB},
            id="budget-replaces-what-it-states",
        ),
        pytest.param(
            a_pod("p")
            .container("a", requests={"cpu": "1"})
            .spec(resources=whole(cpu="4"), overhead={"cpu": amount("1")}),
            (added(cpu="2"),),
            {"cpu": 5000},
            id="claims-are-inside-the-budget-overhead-is-not",
        ),
        pytest.param(
            a_pod("p").container("a", requests={"cpu": "1"}),
            (added("c", cpu="2"), added("d", cpu="1", memory="1Gi")),
            {"cpu": 4000, "memory": GIB},
            id="every-claim-counts-once",
        ),
        pytest.param(
            a_pod("p").container("a").container("b"),
            (overhead("1Gi", "512Mi", containers=("a", "b")),),
            {"memory": 2 * GIB},
            id="claim-overhead-per-pod-and-container",
        ),
        pytest.param(
            a_pod("p").container("a"),
            (
                nodeallocatable.NodeAllocatableResourceClaimStatus(
                    resource_claim_name="c", resources={"cpu": amount("2")}
                ),
            ),
            {"cpu": 2000},
            id="the-keps-form-of-a-status",
        ),
        pytest.param(
            a_pod("p").container(
                "a", requests={"cpu": "1500u", "memory": "1500m", "example.com/gpu": "1", "storage": "9"}
            ),
            (),
            {"cpu": 2, "memory": 2, "example.com/gpu": 1},
            id="rounded-up-and-only-what-nodes-count",
        ),
    ],
)
def test_total(built: Any, claims: requests.ClaimStatuses, want: dict[str, int]) -> None:
    assert dict(resourcenames.amounts(requests.total(built.build(), claims=claims))) == want


@pytest.mark.parametrize(
    ("built", "want_cpu", "want_memory"),
    [
        pytest.param(a_pod("p").container("a").container("b"), 200, 400 * 1024**2, id="defaults-per-container"),
        pytest.param(a_pod("p").container("a", requests={"cpu": "0"}), 0, 200 * 1024**2, id="zero-is-a-request"),
        pytest.param(
            a_pod("p").container("a").container("b").spec(resources=whole(cpu="1")),
            1000,
            400 * 1024**2,
            id="with-a-budget",
        ),
    ],
)
def test_for_scoring(built: Any, want_cpu: int, want_memory: int) -> None:
    demand = ledger.demand(built.build())
    assert (demand.scored_cpu, demand.scored_memory) == (want_cpu, want_memory)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("cpu", (True, False), id="cpu"),
        pytest.param("hugepages-2Mi", (True, False), id="huge-pages"),
        pytest.param("example.com/gpu", (True, True), id="extended"),
        pytest.param("kubernetes.io/batch-cpu", (True, False), id="prefixed-native"),
        pytest.param("deviceclass.resource.kubernetes.io/gpu", (True, True), id="named-after-a-class"),
        pytest.param("storage", (False, False), id="nothing-a-node-has"),
        pytest.param("requests.example.com/gpu", (False, False), id="quota-name"),
    ],
)
def test_resource_names(name: str, want: tuple[bool, bool]) -> None:
    assert (resourcenames.is_counted(name), resourcenames.may_be_devices(name)) == want
