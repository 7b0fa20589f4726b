"""Migrate, then allocate: a claim gets resources that its selectors of v1alpha2 accept, or rightly nothing."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.allocator import budget
from drachma.api import codec
from drachma.api.v1alpha2 import resourceslice
from drachma.offline import migrationcheck, migrationdocuments
from drachma.structured import migration

DRIVERS = ("cards.example.com", "nics.example.com")
NODES = ("a", "b")
NAMES = ("memory", "version", "model", "ecc", "cores", "max-clock.mhz")
QUANTITIES = ("0", "1", "16Gi", "32Gi", "1500m")
VERSIONS = ("1.2.3", "v1.2", "12.0.0", "2.0.0-rc.1")
TEXTS = ("ACME", "1.2.3", "16Gi", "")

values = st.one_of(
    st.sampled_from(QUANTITIES).map(lambda value: {"quantity": value}),
    st.sampled_from(VERSIONS).map(lambda value: {"version": value}),
    st.sampled_from(TEXTS).map(lambda value: {"string": value}),
    st.booleans().map(lambda value: {"bool": value}),
    st.integers(0, 3).map(lambda value: {"int": value}),
    st.lists(st.integers(0, 3), min_size=1, max_size=2).map(lambda value: {"intSlice": value}),
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=2).map(lambda value: {"stringSlice": value}),
)
resources = st.dictionaries(st.sampled_from(NAMES), values, max_size=4).map(
    lambda attributes: [{"name": name, **value} for name, value in attributes.items()]
)


@st.composite
def slices(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for driver in DRIVERS:
        for node in NODES:
            found = draw(st.lists(resources, min_size=int((driver, node) == (DRIVERS[0], NODES[0])), max_size=3))
            named = [{"name": f"r.{number}", "attributes": each} for number, each in enumerate(found)]
            spec = {"nodeName": node, "driverName": driver, "namedResourcesWithAttributes": named}
            metadata = {"name": f"{driver}-{node}"}
            made.append(alpha("NodeResourceSlice", metadata, spec=spec))
    return made


def alpha(kind: str, metadata: dict[str, str], **content: Any) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1alpha2", "kind": kind, "metadata": metadata, **content}


def quoted(text: str) -> str:
    return json.dumps(text)


@st.composite
def atoms(draw: st.DrawFn) -> str:
    name = quoted(draw(st.sampled_from(NAMES)))
    operator = draw(st.sampled_from(("<", "<=", ">", ">=", "==", "!=")))
    literal = draw(
        st.one_of(
            st.sampled_from((*QUANTITIES, *VERSIONS, *TEXTS)).map(quoted),
            st.integers(0, 3).map(str),
            st.sampled_from(("true", "false")),
        )
    )
    quantity, version = quoted(draw(st.sampled_from(QUANTITIES))), quoted(draw(st.sampled_from(("1.2.3", "12.0.0"))))
    text, number = quoted(draw(st.sampled_from(TEXTS))), draw(st.integers(0, 3))
    type_ = draw(st.sampled_from(("quantity", "bool", "int", "intslice", "string", "stringslice", "version")))
    return draw(
        st.sampled_from(
            (
                f"attributes[{name}] {operator} {literal}",
                f"{literal} {operator} attributes[{name}]",
                f"{name} in attributes.{type_}",
                f"{name} in attributes",
                f"({name} in attributes.quantity && attributes.quantity[{name}].isLessThan(quantity({quantity})))",
                f"({name} in attributes.version && attributes.version[{name}].isGreaterThan(semver({version})))",
                f"({name} in attributes.string && attributes.string[{name}] == {text})",
                f"({name} in attributes.int && attributes.int[{name}] >= {number})",
                f"({name} in attributes.bool && attributes.bool[{name}])",
                f"({name} in attributes.intslice && attributes.intslice[{name}].exists(x, x == {number}))",
                f"({name} in attributes.stringslice && {text} in attributes.stringslice[{name}])",
                "true",
            )
        )
    )


selector = st.recursive(
    atoms(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda both: f"({both[0]} && {both[1]})"),
        st.tuples(inner, inner).map(lambda both: f"({both[0]} || {both[1]})"),
        inner.map(lambda one: f"!({one})"),
    ),
    max_leaves=3,
)


@st.composite
def clusters(draw: st.DrawFn) -> list[dict[str, Any]]:
    requests = draw(st.lists(st.tuples(st.sampled_from(DRIVERS), selector), min_size=1, max_size=2))
    filters = draw(st.dictionaries(st.sampled_from(DRIVERS), selector, max_size=1))
    group = "resource.k8s.io"
    return [
        *draw(slices()),
        alpha(
            "ResourceClassParameters",
            {"name": "p"},
            filters=[
                {"driverName": driver, "namedResourcesWithAttributes": {"selector": text}}
                for driver, text in filters.items()
            ],
        ),
        alpha(
            "ResourceClass",
            {"name": "c"},
            driverName=DRIVERS[0],
            structuredParameters=True,
            parametersRef={"apiGroup": group, "kind": "ResourceClassParameters", "name": "p"},
        ),
        alpha(
            "ResourceClaimParameters",
            {"name": "p"},
            requests=[
                {"driverName": driver, "namedResourcesWithAttributes": {"required": [{"selector": text}]}}
                for driver, text in requests
            ],
        ),
        alpha(
            "ResourceClaim",
            {"name": "claim"},
            spec={
                "resourceClassName": "c",
                "parametersRef": {"apiGroup": group, "kind": "ResourceClaimParameters", "name": "p"},
            },
        ),
    ]


@settings(max_examples=150, deadline=None)
@given(clusters())
def test_a_migrated_claim_gets_what_it_asked_for(documents: list[dict[str, Any]]) -> None:
    done = migrationdocuments.migrate(documents)
    [finding] = migrationcheck.check(done.migration, done.slices)
    assert finding.judgement is migrationcheck.Judgement.RIGHT, (str(finding), done.documents)


def crowded(*selectors: str) -> list[dict[str, Any]]:
    """A node with three cards, and a claim with so many requests for one of them."""
    named = [{"name": f"card-{cores}", "attributes": [{"name": "cores", "int": cores}]} for cores in (1, 2, 4)]
    spec = {"nodeName": "a", "driverName": DRIVERS[0], "namedResourcesWithAttributes": named}
    requests = [
        {"driverName": DRIVERS[0], "namedResourcesWithAttributes": {"required": [{"selector": text}]}}
        for text in selectors
    ]
    reference = {"apiGroup": "resource.k8s.io", "kind": "ResourceClaimParameters", "name": "p"}
    return [
        alpha("NodeResourceSlice", {"name": "s"}, spec=spec),
        alpha("ResourceClass", {"name": "c"}, driverName=DRIVERS[0], structuredParameters=True),
        alpha("ResourceClaimParameters", {"name": "p"}, requests=requests),
        alpha("ResourceClaim", {"name": "claim"}, spec={"resourceClassName": "c", "parametersRef": reference}),
    ]


@pytest.mark.parametrize(
    ("selectors", "steps", "want"),
    [
        pytest.param(
            ["true", 'attributes["cores"] < 4', 'attributes["cores"] < 2'],
            1000,
            "checked: ResourceClaim claim: gets card-4, card-2, card-1 on a",
            id="found",
        ),
        pytest.param(
            ["true", 'attributes["cores"] < 4', 'attributes["cores"] < 2'],
            1,
            "not decided: ResourceClaim claim: card-4, card-2, card-1 on a would do, "
            "but the search was given up on a: 1 steps were not enough",
            id="given-up",
        ),
        pytest.param(
            ['attributes["cores"] < 4', 'attributes["cores"] < 4', 'attributes["cores"] < 4'],
            1,
            "checked: ResourceClaim claim: gets nothing, as before",
            id="given-up-where-there-is-nothing",
        ),
    ],
)
def test_what_takes_too_long_is_not_decided(selectors: list[str], steps: int, want: str) -> None:
    objects = [codec.decode(each) for each in crowded(*selectors)]
    sources = [each for each in objects if isinstance(each, resourceslice.NodeResourceSlice)]
    [finding] = migrationcheck.check(migration.migrate(objects), sources, limits=budget.Limits(steps=steps))
    assert f"{finding.judgement}: {finding}" == want


def test_the_check_sees_what_is_wrong() -> None:
    """A migration that forgot what the claim asked for."""
    attributes = [{"name": "cores", "int": 1}]
    named = [
        {"name": "small", "attributes": attributes},
        {"name": "large", "attributes": [{"name": "cores", "int": 8}]},
    ]
    spec = {"nodeName": "a", "driverName": DRIVERS[0], "namedResourcesWithAttributes": named}
    documents = [
        alpha("NodeResourceSlice", {"name": "s"}, spec=spec),
        alpha("ResourceClass", {"name": "c"}, driverName=DRIVERS[0], structuredParameters=True),
        alpha("ResourceClaim", {"name": "claim"}, spec={"resourceClassName": "c"}),
    ]
    objects = [codec.decode(each) for each in documents]
    done = migration.migrate(objects)
    [asked] = done.asked
    need = msgspec.structs.replace(asked.needs["request-0"], selector='attributes["cores"] > 1')
    forgetful = msgspec.structs.replace(done, asked=(asked._replace(needs={"request-0": need}),))
    sources = [each for each in objects if isinstance(each, resourceslice.NodeResourceSlice)]
    assert [str(each) for each in migrationcheck.check(done, sources)] == ["ResourceClaim claim: gets small on a"]
    [finding] = migrationcheck.check(forgetful, sources)
    assert finding.judgement is migrationcheck.Judgement.WRONG
    assert str(finding) == "ResourceClaim claim: gets small on a for request-0, which it did not ask for"
