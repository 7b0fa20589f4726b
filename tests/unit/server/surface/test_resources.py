"""The catalogue: every kind of the scheme is served, and lookups and warnings say what upstream's do."""

import pytest

from drachma.api import gates, scheme
from drachma.server.kinds import builtin
from drachma.server.surface import resources
from tests.unit.server import served

EVERYTHING = resources.Catalog(builtin.served(gates.Gates(frozenset(gates.Gate))))


@pytest.mark.parametrize("kind", [pytest.param(kind, id=f"{kind.plural}-{kind.versions[-1]}") for kind in scheme.KINDS])
def test_every_kind_of_the_scheme_is_served(kind: scheme.Kind) -> None:
    for version in kind.versions:
        result = EVERYTHING.find(kind.group, version, plural=kind.plural)
        assert result is not None
        # Components do not read the oldest form of autoscalers, which the server converts.
        assert (result.versions[: len(kind.versions)], result.namespaced) == (kind.versions, kind.namespaced)
        if kind.group == "resource.k8s.io" or not kind.complete:
            assert result.model is (kind if kind.complete else None)
        assert EVERYTHING.find_kind(result.api_version(version), kind.name) is result


def test_kinds_of_gates_can_be_switched_off() -> None:
    kinds = {(kind.group, kind.plural) for kind in builtin.KINDS}
    assert {(kind.group, kind.plural) for kind in builtin.served(gates.ALL)} == kinds - {
        ("scheduling.k8s.io", "compositepodgroups")
    }
    group = EVERYTHING.group("resource.k8s.io")
    assert group is not None
    assert group.versions == ("v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2")


def test_versions_of_a_group_are_ordered_by_stability_then_number() -> None:
    group = served.CATALOG.group("resource.k8s.io")
    assert group is not None
    assert group.versions == ("v1", "v1beta2", "v1beta1", "v1alpha3")


@pytest.mark.parametrize(
    ("plural", "want_subresources"),
    [
        pytest.param(
            "pods",
            [
                "attach",
                "binding",
                "eviction",
                "exec",
                "log",
                "portforward",
                "proxy",
                "ephemeralcontainers",
                "resize",
                "status",
            ],
            id="pods",
        ),
        pytest.param("namespaces", ["finalize", "status"], id="namespaces"),
        pytest.param("configmaps", [], id="configmaps"),
    ],
)
def test_subresources_of_core(plural: str, want_subresources: list[str]) -> None:
    result = served.CATALOG.find("", "v1", plural=plural)
    assert result is not None
    assert [each.name for each in result.subresources] == want_subresources


def test_namespaces_cannot_be_deleted_as_a_collection() -> None:
    result = served.CATALOG.find("", "v1", plural="namespaces")
    assert result is not None
    assert not result.has("deletecollection")


@pytest.mark.parametrize(
    ("plural", "version", "want"),
    [
        pytest.param("resourceclaims", "v1", None, id="stable"),
        pytest.param(
            "resourceclaims",
            "v1beta1",
            "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+",
            id="first-beta",
        ),
        pytest.param(
            "resourceclaimtemplates",
            "v1alpha3",
            "resource.k8s.io/v1alpha3 ResourceClaimTemplate is deprecated in v1.34+, unavailable in v1.37+",
            id="last-alpha",
        ),
        pytest.param(
            "resourceslices",
            "v1beta2",
            "resource.k8s.io/v1beta2 ResourceSlice is deprecated in v1.36+, unavailable in v1.39+",
            id="second-beta",
        ),
        pytest.param(
            "devicetaintrules",
            "v1beta2",
            None,
            id="taint-rules-are-deprecated-later",
        ),
        pytest.param(
            "devicetaintrules",
            "v1alpha3",
            "resource.k8s.io/v1alpha3 DeviceTaintRule is deprecated in v1.36+, unavailable in v1.39+",
            id="taint-rules-alpha",
        ),
    ],
)
def test_deprecation(plural: str, version: str, want: str | None) -> None:
    result = served.CATALOG.find("resource.k8s.io", version, plural=plural)
    assert result is not None
    assert resources.deprecation(result, version) == want


def test_unknown_resources_are_not_found() -> None:
    assert served.CATALOG.find("resource.k8s.io", "v1", plural="nopes") is None
    assert served.CATALOG.find("resource.k8s.io", "v2", plural="resourceclaims") is None
    assert served.CATALOG.resources_in("nope.example.com", "v1") == ()
