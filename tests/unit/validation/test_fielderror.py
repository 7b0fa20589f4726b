"""Field errors: how they read, how two rule sets become one list, and the Status made of them."""

from typing import Any

import pytest

from drachma.api import resourceclaim, resourceslice
from drachma.validation import context, fielderror, refusal, rendering
from drachma.validation.fielderror import FieldError
from drachma.validation.path import ROOT, SPEC, Path
from drachma.values import quantity


@pytest.mark.parametrize(
    ("error", "want"),
    [
        pytest.param(fielderror.invalid(SPEC, "a", "no"), 'spec: Invalid value: "a": no', id="text"),
        pytest.param(
            fielderror.invalid(SPEC, 'a"b\n', "no"), r'spec: Invalid value: "a\"b\n": no', id="quoted-like-go"
        ),
        pytest.param(fielderror.invalid(SPEC, 5, "no"), "spec: Invalid value: 5: no", id="number"),
        pytest.param(fielderror.invalid(SPEC, value=False, detail="no"), "spec: Invalid value: false: no", id="false"),
        pytest.param(fielderror.invalid(SPEC, None, "no"), "spec: Invalid value: null: no", id="null"),
        pytest.param(
            fielderror.invalid(SPEC, rendering.named("<a>"), "no"),
            r'spec: Invalid value: "\u003ca\u003e": no',
            id="named-type-as-json",
        ),
        pytest.param(
            fielderror.not_supported(SPEC, "a", ["b", "c"]),
            'spec: Unsupported value: "a": supported values: "b", "c"',
            id="not-supported",
        ),
        pytest.param(
            fielderror.not_supported(SPEC, "a", []), 'spec: Unsupported value: "a"', id="nothing-is-supported"
        ),
        pytest.param(fielderror.required(SPEC), "spec: Required value", id="required"),
        pytest.param(fielderror.required(SPEC, "why"), "spec: Required value: why", id="required-with-detail"),
        pytest.param(fielderror.forbidden(SPEC, "why"), "spec: Forbidden: why", id="forbidden"),
        pytest.param(fielderror.duplicate(SPEC, "a"), 'spec: Duplicate value: "a"', id="duplicate"),
        pytest.param(fielderror.not_found(SPEC, "a"), 'spec: Not found: "a"', id="not-found"),
        pytest.param(fielderror.too_long(SPEC, 1), "spec: Too long: may not be more than 1 byte", id="one-byte"),
        pytest.param(
            fielderror.too_long(SPEC, 2, unit="character"),
            "spec: Too long: may not be more than 2 characters",
            id="characters",
        ),
        pytest.param(fielderror.too_many(SPEC, 2, 1), "spec: Too many: 2: must have at most 1 item", id="one-item"),
        pytest.param(fielderror.internal(SPEC, "oops"), "spec: Internal error: oops", id="internal"),
    ],
)
def test_messages(error: FieldError, want: str) -> None:
    assert str(error) == want


def test_paths() -> None:
    assert str(ROOT.child("spec").child("a", "b").item(1).key("x/y").child("c")) == "spec.a.b[1][x/y].c"
    assert str(ROOT) == ""


class TestMerge:
    """Hand-written and declared errors."""

    written = fielderror.invalid(SPEC, "a", "by hand", origin="format=x")

    def test_a_declared_rule_replaces_what_it_covers(self) -> None:
        declared = fielderror.invalid(SPEC, "a", "declared", origin="format=x")
        assert fielderror.merge(fielderror.covered([self.written]), [declared]) == (declared,)

    @pytest.mark.parametrize(
        "declared",
        [
            pytest.param(fielderror.invalid(SPEC, "a", "declared", origin="format=y"), id="other-origin"),
            pytest.param(fielderror.invalid(Path("status"), "a", "declared", origin="format=x"), id="other-field"),
            pytest.param(fielderror.required(SPEC), id="other-reason"),
        ],
    )
    def test_other_errors_stay(self, declared: FieldError) -> None:
        assert len(fielderror.merge(fielderror.covered([self.written]), [declared])) == 2

    def test_an_invalid_value_needs_an_origin(self) -> None:
        anonymous = fielderror.invalid(SPEC, "a", "by hand")
        declared = fielderror.invalid(SPEC, "a", "declared")
        assert len(fielderror.merge(fielderror.covered([anonymous]), [declared])) == 2

    def test_errors_that_are_not_covered_stay(self) -> None:
        declared = fielderror.invalid(SPEC, "a", "declared", origin="format=x")
        assert fielderror.merge([self.written], [declared]) == (self.written, declared)

    @pytest.mark.parametrize(
        ("old_path", "new_path"),
        [
            pytest.param(
                "spec.devices.requests[3].selectors", "spec.devices.requests[3].exactly.selectors", id="flat-request"
            ),
            pytest.param(
                "spec.spec.devices.requests[3].selectors",
                "spec.spec.devices.requests[3].exactly.selectors",
                id="flat-request-of-a-template",
            ),
            pytest.param("spec.devices[0].basic.taints", "spec.devices[0].taints", id="basic-device"),
        ],
    )
    def test_v1beta1_paths_are_recognized(self, old_path: str, new_path: str) -> None:
        written = fielderror.covered([fielderror.required(Path(new_path))])
        declared = fielderror.required(Path(old_path))
        assert fielderror.merge(written, [declared]) == (declared,)

    def test_repeated_errors_are_told_once(self) -> None:
        assert fielderror.merge([self.written, self.written], []) == (self.written,)


def test_status() -> None:
    errors = [fielderror.required(SPEC), fielderror.required(SPEC), fielderror.duplicate(Path("x"), "a")]
    document = refusal.invalid(errors, group="resource.k8s.io", kind="ResourceClaim", name="foo")
    assert document["message"] == (
        'ResourceClaim.resource.k8s.io "foo" is invalid: [spec: Required value, x: Duplicate value: "a"]'
    )
    assert document["details"]["causes"][0] == {
        "reason": "FieldValueRequired",
        "message": "Required value",
        "field": "spec",
    }
    assert len(document["details"]["causes"]) == 3
    single = refusal.message(errors[:1], group="", kind="Pod", name="p")
    assert single == 'Pod "p" is invalid: spec: Required value'


@pytest.mark.parametrize(
    ("value", "wire", "internal"),
    [
        pytest.param(
            resourceslice.CounterSet(name="a", counters={"m": resourceslice.Counter()}),
            '{"name":"a","counters":{"m":{"value":"0"}}}',
            '{"Name":"a","Counters":{"m":{"Value":"0"}}}',
            id="counter-set",
        ),
        pytest.param(
            resourceclaim.ResourceClaimConsumerReference(name="p"),
            '{"resource":"","name":"p","uid":""}',
            '{"APIGroup":"","Resource":"","Name":"p","UID":""}',
            id="consumer",
        ),
        pytest.param(
            resourceclaim.CapacityRequirements(requests={"a": quantity.Quantity.parse("1024Mi")}),
            '{"requests":{"a":"1Gi"}}',
            '{"Requests":{"a":"1Gi"}}',
            id="quantity-in-canonical-form",
        ),
        pytest.param(
            resourceclaim.AllocatedDeviceStatus(driver="d"),
            '{"driver":"d","pool":"","device":"","conditions":null}',
            '{"Driver":"d","Pool":"","Device":"","ShareID":null,"Conditions":null,"Data":null,"NetworkData":null}',
            id="device-status",
        ),
    ],
)
def test_printed_structs(value: Any, wire: str, internal: str) -> None:
    assert rendering.wire(value) == wire
    assert rendering.internal(value) == internal


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("spec.a[1].b", 9, id="spaces-count"),
        pytest.param("spec.a[0]", 2, id="item"),
        pytest.param("spec.a[2]", None, id="beyond-the-list"),
        pytest.param("spec.x", None, id="no-such-field"),
    ],
)
def test_lengths_in_the_clients_text(path: str, want: int | None) -> None:
    assert context.length_at(b'{"spec": {"a": [{}, {"b": {"c":  1}}]}}', path) == want


def test_broken_text_has_no_lengths() -> None:
    assert context.length_at(b"not json", "spec") is None
