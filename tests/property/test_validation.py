"""Laws of validation: quick ways of checking answer what the plain ones do."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import hypothesis
from hypothesis import strategies as st

from drachma import validation
from drachma.api import codec, defaults, gates
from drachma.validation import authorization, limits, writes
from drachma.values import names

NOW = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
TEXTS = st.text(st.sampled_from("abzA09-._/% é\N{LATIN SMALL LETTER LONG S}\N{KELVIN SIGN}\n"), max_size=8) | st.builds(
    lambda text, times: text * times,
    st.sampled_from(["a", "a.", "é", "A", "\N{KELVIN SIGN}"]),
    st.sampled_from([31, 63, 64, 127, 253, 254]),
)
LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
CASELESS = LABEL.replace("a-z", "a-zA-Z\N{LATIN SMALL LETTER LONG S}\N{KELVIN SIGN}")
FORMS = {
    names.dns1123_label: (LABEL, 63),
    names.dns1123_subdomain: (rf"{LABEL}(\.{LABEL})*", 253),
    names.dns1123_subdomain_caseless: (rf"{CASELESS}(\.{CASELESS})*", 253),
    names.label_value: ("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", 63),
}


@hypothesis.given(TEXTS)
def test_names_are_good_if_their_form_and_length_are(text: str) -> None:
    for check, (pattern, limit) in FORMS.items():
        is_good = re.fullmatch(pattern, text) is not None and len(text.encode()) <= limit
        assert [check(text) == () for _ in range(2)] == [is_good, is_good], check.__name__


@hypothesis.given(TEXTS)
def test_a_driver_name_is_good_if_it_is_in_small_letters(text: str) -> None:
    assert names.driver_name(text) == names.dns1123_subdomain(text.lower())


short = st.sampled_from(["gpu", "one", "two", "a b", "", "x" * 64])
optional = dict[str, st.SearchStrategy[Any]]


def documents(fields: optional, required: optional | None = None) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(required or {}, optional=fields)


def lists(items: st.SearchStrategy[Any], max_size: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, max_size=max_size)


TOLERATIONS = lists(
    documents({"key": short, "operator": st.sampled_from(["Exists", "Equal", "x"]), "effect": short}), max_size=1
)
WAY: optional = {
    "deviceClassName": short,
    "selectors": lists(st.sampled_from([{"cel": {"expression": "true"}}, {"cel": {"expression": "1"}}, {}])),
    "allocationMode": st.sampled_from(["All", "ExactCount", "x"]),
    "count": st.integers(-1, 2),
    "adminAccess": st.booleans(),
    "tolerations": TOLERATIONS,
}
REQUESTS = lists(
    documents(
        {
            "exactly": documents(WAY),
            "firstAvailable": lists(documents({key: WAY[key] for key in ("count", "tolerations")}, {"name": short})),
        },
        {"name": short},
    )
)
CLAIM_SPECS = documents(
    {
        "constraints": lists(documents({"requests": lists(short), "matchAttribute": short}), max_size=1),
        "config": lists(
            documents(
                {
                    "requests": lists(short),
                    "opaque": documents({"driver": short, "parameters": st.sampled_from([{}, {"a": 1}, 1])}),
                }
            ),
            max_size=1,
        ),
    },
    {"requests": REQUESTS},
).map(lambda devices: {"devices": devices})
GOOD_SPEC = {
    "devices": {
        "requests": [
            {
                "name": "gpu",
                "exactly": {
                    "deviceClassName": "gpu",
                    "adminAccess": True,
                    # Compiles only where attributes can be lists.
                    "selectors": [{"cel": {"expression": 'device.attributes["a"].b.includes("x")'}}],
                },
            }
        ],
        "config": [{"opaque": {"driver": "gpu", "parameters": {}}}],
    }
}
WIDE_BODY = b'{"spec":{"devices":{"config":[{"opaque":{"parameters":{%b}}}]}}}' % (b" " * limits.OPAQUE_BYTES)
METADATA = documents(
    {
        "labels": st.dictionaries(short, short, max_size=2),
        "annotations": st.dictionaries(short, st.text(max_size=2), max_size=1),
        "finalizers": lists(st.sampled_from(["a.b/c", "mine", "orphan", "foregroundDeletion", "a b"])),
        "ownerReferences": lists(
            documents({"apiVersion": st.sampled_from(["v1", "a/b/c"]), "kind": short, "name": short, "uid": short})
        ),
        "managedFields": lists(
            documents({"manager": st.sampled_from(["m", "\t"]), "operation": st.sampled_from(["Update", "x"])})
        ),
        "generation": st.integers(-1, 2),
        "generateName": st.sampled_from(["a-", "a/-", "A"]),
        "deletionTimestamp": st.just("2001-02-03T04:05:06Z"),
    },
    {"name": st.sampled_from(["claim", "Claim", "", "."]), "namespace": st.sampled_from(["default", "", "a.b"])},
)
CONTEXTS = st.builds(
    validation.Context,
    now=st.just(NOW),
    gates=st.sampled_from(
        [
            gates.ALL,
            gates.ALL.switched({"DRAAdminAccess": False}),
            gates.ALL.switched({"DRAListTypeAttributes": False}),
        ]
    ),
    api_version=st.sampled_from([None, "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"]),
    namespace_labels=st.sampled_from([None, {}, {authorization.ADMIN_ACCESS_LABEL: "true"}]),
    body=st.sampled_from([None, WIDE_BODY]),
)


def read(kind: str, own: dict[str, Any], spec: dict[str, Any]) -> Any:
    """An object with defaults."""
    wishes = {"spec": spec} if kind == "ResourceClaimTemplate" else spec
    document = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": own, "spec": wishes}
    return defaults.apply(codec.decode(json.loads(json.dumps(document))), now=NOW)


@hypothesis.settings(max_examples=60)
@hypothesis.given(
    kind=st.sampled_from(["ResourceClaim", "ResourceClaimTemplate"]),
    spec=CLAIM_SPECS | st.just(GOOD_SPEC),
    heads=st.lists(METADATA, min_size=1, max_size=2),
    contexts=st.lists(CONTEXTS, min_size=2, max_size=4),
)
@hypothesis.example(
    kind="ResourceClaim",
    spec=GOOD_SPEC,
    heads=[{"name": "claim", "namespace": "default"}],
    contexts=[
        validation.Context(now=NOW),
        validation.Context(now=NOW, body=WIDE_BODY),
        validation.Context(now=NOW, gates=gates.ALL.switched({"DRAListTypeAttributes": False})),
        validation.Context(now=NOW, namespace_labels={}),
    ],
)
def test_claims_can_be_examined_before_anybody_knows_their_metadata(
    kind: str, spec: dict[str, Any], heads: list[dict[str, Any]], contexts: list[validation.Context]
) -> None:
    for context in contexts:
        examination = writes.examine_new(read(kind, {}, spec), context)
        for head in heads:
            own = read(kind, head, spec)
            assert writes.judge_new(examination, own.metadata) == writes.create(own, context)
