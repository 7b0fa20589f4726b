"""Quality of service of pods, with and without their claims."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drachma.api import codec, pod
from drachma.node.pods import podquality

GIB = 2**30


def _pod(name: str, *, claim: str = "", priority: int | None = None, **resources: Any) -> pod.Pod:
    entry = {
        "resourceClaimName": "c",
        "containers": ["c"],
        "mapping": [{"name": "cpu", "quantity": "2"}, {"name": "memory", "quantity": claim}],
    }
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": name},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}], "priority": priority},
        "status": {"nodeAllocatableResourceClaimStatuses": [entry] if claim else []},
    }
    decoded = codec.decode(document)
    assert isinstance(decoded, pod.Pod)
    return decoded


def test_what_claims_bring_guarantees_and_bounds_a_container() -> None:
    quality = podquality.pod_quality(_pod("p", claim="2Gi"), memory=8 * GIB, in_quality=True)
    own = quality.containers["c"]
    assert (quality.name, dict(quality.oom_scores)) == ("Guaranteed", {"c": -997})
    assert (own.cpu_shares, own.cpu_quota, own.cpu_period, own.memory) == (2048, 200_000, 100_000, 2 * GIB)


def test_without_them_the_spec_decides() -> None:
    quality = podquality.pod_quality(_pod("p", claim="2Gi"), memory=8 * GIB, in_quality=False)
    own = quality.containers["c"]
    assert (quality.name, dict(quality.oom_scores)) == ("BestEffort", {"c": 1000})
    assert (own.cpu_shares, own.cpu_quota, own.memory) == (2, None, None)


def test_a_limit_without_a_request_is_the_share() -> None:
    quality = podquality.pod_quality(_pod("p", limits={"cpu": "500m"}), memory=8 * GIB, in_quality=False)
    assert (quality.containers["c"].cpu_shares, quality.containers["c"].cpu_quota) == (512, 50_000)


@pytest.mark.parametrize(
    ("used", "counts_claims", "want"),
    [
        pytest.param({"claims": 1, "plain": 1, "vip": 1}, True, ["plain", "vip", "claims"], id="who-has-more-first"),
        pytest.param({"claims": 1, "plain": 2, "vip": 3}, False, ["plain", "claims", "vip"], id="claims-left-out"),
        pytest.param({"claims": 9, "plain": 9, "vip": 9}, True, ["plain", "claims", "vip"], id="priority-before-size"),
        pytest.param({"plain": 9, "vip": 9}, True, ["claims", "plain", "vip"], id="unknown-first"),
    ],
)
def test_who_is_evicted_first(used: dict[str, int], counts_claims: bool, want: list[str]) -> None:
    pods = [_pod("claims", claim="4Gi"), _pod("vip", priority=1000), _pod("plain")]
    usage = {name: size * GIB for name, size in used.items()}
    order = podquality.eviction_order(pods, usage, counts_claims=counts_claims)
    assert [each.metadata.name for each in order] == want


_RESOURCES = st.dictionaries(
    st.sampled_from(["requests", "limits"]),
    st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 8).map(str)),
)


@given(resources=_RESOURCES, gib=st.integers(1, 6))
def test_a_claim_never_makes_a_pod_worth_less(resources: Any, gib: int) -> None:
    order = ["BestEffort", "Burstable", "Guaranteed"]
    built_pod = _pod("p", claim=f"{gib}Gi", **resources)
    before = podquality.pod_quality(built_pod, memory=8 * GIB, in_quality=False)
    after = podquality.pod_quality(built_pod, memory=8 * GIB, in_quality=True)
    assert order.index(after.name) >= order.index(before.name)
    assert after.oom_scores["c"] <= before.oom_scores["c"]
    assert after.containers["c"].cpu_shares >= before.containers["c"].cpu_shares
    bound, widened = before.containers["c"].memory, after.containers["c"].memory
    assert bound is None or (widened is not None and widened >= bound)
