"""ResourceClaim: every rule for new claims, for immutability and for status transitions."""

from typing import Any

import pytest

from drachma.api import devices, gates
from drachma.validation import rendering
from tests.unit.validation import builders
from tests.unit.validation.builders import ALLOCATED, CLAIM, Document, changed, create, setting, stored, update

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
CASELESS_SUBDOMAIN = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'Example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
REFERENCE = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
UNLABELLED = (
    "Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label "
    "on the containing namespace"
)
EXACTLY = "spec.devices.requests.0.exactly"
SUB = "spec.devices.requests.1.firstAvailable.0"


def config(**fields: Any) -> list[Document]:
    opaque = {"driver": "dra.example.com", "parameters": {"a": 1}}
    return [{"opaque": {**opaque, **fields}}]


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(CLAIM, id="plain"),
        pytest.param(changed(CLAIM, setting("spec.devices.config", config())), id="config"),
        pytest.param(
            changed(
                CLAIM, setting("spec.devices.constraints", [{"requests": ["some/big"], "matchAttribute": "a.b/c"}])
            ),
            id="constraint-on-subrequest",
        ),
        pytest.param(changed(CLAIM, setting(f"{EXACTLY}.tolerations", [{}] * 40)), id="tolerations-are-not-counted"),
        pytest.param({**CLAIM, "spec": {}}, id="no-requests"),
    ],
)
def test_good(document: Document) -> None:
    assert create(document) == []


@pytest.mark.parametrize(
    ("path", "value", "field", "message"),
    [
        pytest.param("metadata.name", "A", "metadata.name", f'Invalid value: "A": {SUBDOMAIN}', id="name"),
        pytest.param(
            "metadata.namespace",
            "a.b",
            "metadata.namespace",
            'Invalid value: "a.b": must not contain dots',
            id="namespace",
        ),
        pytest.param(
            "spec.devices.requests.0.name",
            "a.b",
            "spec.devices.requests[0].name",
            'Invalid value: "a.b": must not contain dots',
            id="request-name",
        ),
        pytest.param(
            "spec.devices.requests.0.exactly",
            None,
            "spec.devices.requests[0]",
            "Required value: exactly one of `exactly` or `firstAvailable` is required",
            id="neither-exactly-nor-first-available",
        ),
        pytest.param(
            "spec.devices.requests.1.exactly",
            {"deviceClassName": "gpu"},
            "spec.devices.requests[1]",
            "Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, "
            "but multiple fields are set",
            id="exactly-and-first-available",
        ),
        pytest.param(
            f"{EXACTLY}.deviceClassName",
            "",
            "spec.devices.requests[0].exactly.deviceClassName",
            "Required value",
            id="class-required",
        ),
        pytest.param(
            f"{SUB}.deviceClassName",
            "A",
            "spec.devices.requests[1].firstAvailable[0].deviceClassName",
            f'Invalid value: "A": {SUBDOMAIN}',
            id="class-of-subrequest",
        ),
        pytest.param(
            f"{EXACTLY}.selectors",
            [{}],
            "spec.devices.requests[0].exactly.selectors[0].cel",
            "Required value",
            id="selector-without-cel",
        ),
        pytest.param(
            f"{EXACTLY}.selectors",
            [{"cel": {"expression": "true"}}] * 33,
            "spec.devices.requests[0].exactly.selectors",
            "Too many: 33: must have at most 32 items",
            id="too-many-selectors",
        ),
        pytest.param(
            f"{EXACTLY}.selectors",
            [{"cel": {"expression": "1"}}],
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
            'Invalid value: "1": must evaluate to bool or the unknown type, not int',
            id="selector-of-wrong-type",
        ),
        pytest.param(
            f"{EXACTLY}.selectors",
            [{"cel": {"expression": "x"}}],
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
            "Invalid value: \"x\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'x' "
            "(in container '')\n | x\n | ^",
            id="selector-that-does-not-compile",
        ),
        pytest.param(
            f"{EXACTLY}.selectors",
            [{"cel": {"expression": "'" + "é" * 5120 + "' == ''"}}],
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
            "Too long: may not be more than 10240 bytes",
            id="selector-too-long-in-bytes",
        ),
        pytest.param(
            f"{EXACTLY}.count",
            -1,
            "spec.devices.requests[0].exactly.count",
            "Invalid value: -1: must be greater than zero",
            id="count-not-positive",
        ),
        pytest.param(
            EXACTLY,
            {"deviceClassName": "gpu", "allocationMode": "All", "count": 2},
            "spec.devices.requests[0].exactly.count",
            "Invalid value: 2: must not be specified when allocationMode is 'All'",
            id="count-with-all",
        ),
        pytest.param(
            f"{EXACTLY}.allocationMode",
            "Most",
            "spec.devices.requests[0].exactly.allocationMode",
            'Unsupported value: "Most": supported values: "All", "ExactCount"',
            id="allocation-mode",
        ),
        pytest.param(
            f"{EXACTLY}.tolerations",
            [{"operator": "Exists", "value": "x"}],
            "spec.devices.requests[0].exactly.tolerations[0].value",
            'Invalid value: "x": must be empty for operator `Exists`',
            id="toleration-exists-with-value",
        ),
        pytest.param(
            f"{EXACTLY}.tolerations",
            [{"key": "a b", "operator": "Exists"}],
            "spec.devices.requests[0].exactly.tolerations[0].key",
            f'Invalid value: "a b": {NAME_PART}',
            id="toleration-key",
        ),
        pytest.param(
            "spec.devices.requests.1.name",
            "one",
            "spec.devices.requests[1]",
            'Duplicate value: {"name":"one","firstAvailable":[{"name":"big","deviceClassName":"gpu",'
            '"allocationMode":"ExactCount","count":1}]}',
            id="duplicate-request-is-shown-whole",
        ),
        pytest.param(
            "spec.devices.constraints",
            [{}],
            "spec.devices.constraints[0]",
            'Required value: exactly one of "matchAttribute" or "distinctAttribute" is required, '
            "but multiple fields are set",
            id="constraint-without-attribute",
        ),
        pytest.param(
            "spec.devices.constraints",
            [{"matchAttribute": "A_b/x"}],
            "spec.devices.constraints[0].matchAttribute",
            f'Invalid value: "A_b": prefix: {SUBDOMAIN}',
            id="attribute-domain",
        ),
        pytest.param(
            "spec.devices.constraints",
            [{"matchAttribute": "/x"}],
            "spec.devices.constraints[0].matchAttribute",
            'Invalid value: "": prefix must not be empty',
            id="attribute-without-domain",
        ),
        pytest.param(
            "spec.devices.constraints",
            [{"distinctAttribute": "a/"}],
            "spec.devices.constraints[0].distinctAttribute",
            'Invalid value: "": name must not be empty',
            id="attribute-without-name",
        ),
        pytest.param(
            "spec.devices.constraints",
            [{"matchAttribute": "a/b", "requests": ["one/x"]}],
            "spec.devices.constraints[0].requests[0]",
            f'Invalid value: "one/x": {REFERENCE}',
            id="constraint-on-unknown-request",
        ),
        pytest.param(
            "spec.devices.constraints",
            [{"matchAttribute": "a/b", "requests": ["a/b/c"]}],
            "spec.devices.constraints[0].requests[0]",
            f'Invalid value: "a/b/c": {REFERENCE}',
            id="reference-with-two-slashes",
        ),
        pytest.param(
            "spec.devices.constraints",
            [{"matchAttribute": "a/b", "requests": ["one", "one"]}],
            "spec.devices.constraints[0].requests[1]",
            'Duplicate value: "one"',
            id="duplicate-reference",
        ),
        pytest.param(
            "spec.devices.config", [{}], "spec.devices.config[0].opaque", "Required value", id="config-without-opaque"
        ),
        pytest.param(
            "spec.devices.config",
            config(driver="a_b"),
            "spec.devices.config[0].opaque.driver",
            f'Invalid value: "a_b": {CASELESS_SUBDOMAIN}',
            id="config-driver",
        ),
        pytest.param(
            "spec.devices.config",
            config(driver="d" * 64),
            "spec.devices.config[0].opaque.driver",
            "Too long: may not be more than 63 characters",
            id="config-driver-too-long",
        ),
        pytest.param(
            "spec.devices.config",
            config(parameters=None),
            "spec.devices.config[0].opaque.parameters",
            "Required value",
            id="config-without-parameters",
        ),
        pytest.param(
            "spec.devices.config",
            config(parameters="x"),
            "spec.devices.config[0].opaque.parameters",
            'Invalid value: "<value omitted>": must be a valid JSON object',
            id="config-parameters-no-object",
        ),
        pytest.param(
            "spec.devices.config",
            config(parameters={"a": "x" * 10233}),
            "spec.devices.config[0].opaque.parameters",
            "Too long: may not be more than 10240 bytes",
            id="config-parameters-too-long",
        ),
        pytest.param(
            f"{EXACTLY}.derivedAttributes",
            [{"name": "a/b", "expression": "device.driver"}],
            "spec.devices.requests[0].exactly.derivedAttributes[0].name",
            'Invalid value: "a/b": must be referenced by at least one matchAttribute or distinctAttribute constraint '
            "targeting this request",
            id="derived-attribute-nobody-uses",
        ),
    ],
)
def test_one_thing_wrong(path: str, value: Any, field: str, message: str) -> None:
    assert create(changed(CLAIM, setting(path, value))) == [f"{field}: {message}"]


@pytest.mark.parametrize(
    ("size", "is_good"), [pytest.param(10232, True, id="at-the-limit"), pytest.param(10233, False, id="one-byte-more")]
)
def test_opaque_limit_counts_compact_bytes(size: int, *, is_good: bool) -> None:
    document = changed(CLAIM, setting("spec.devices.config", config(parameters={"a": "x" * size})))
    assert (create(document) == []) is is_good


def test_opaque_limit_counts_what_the_client_wrote() -> None:
    document = changed(CLAIM, setting("spec.devices.config", config(parameters={"a": "x" * 10232})))
    body = b'{"spec":{"devices":{"config":[{"opaque":{"parameters":{"a": "' + b"x" * 10232 + b'"}}}]}}}'
    assert create(document, body=body) == [
        "spec.devices.config[0].opaque.parameters: Too long: may not be more than 10240 bytes"
    ]


def derived(expression: str, count: int) -> Document:
    """A claim with so many derived attributes, each used by a constraint."""
    attributes = [{"name": f"a/b{i}", "expression": expression} for i in range(count)]
    document = changed(CLAIM, setting(f"{EXACTLY}.derivedAttributes", attributes))
    builders.put(document, "spec.devices.constraints", [{"matchAttribute": each["name"]} for each in attributes])
    return document


def test_derived_attributes_share_one_budget() -> None:
    ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    expensive = f"{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, a + b + c + d > 0))))"
    assert create(derived(expensive, 1)) == []
    assert create(derived(expensive, 32)) == [
        (
            "spec.devices: Forbidden: too complex, "
            "total cost of derived attribute CEL expressions in the claim exceeds cost limit"
        )
    ]


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("device.driver", None, id="text"),
        pytest.param("['a']", None, id="list"),
        pytest.param(
            "device.attributes",
            "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, "
            "not map(string, map(string, dyn))",
            id="map",
        ),
    ],
)
def test_derived_attribute_types(expression: str, problem: str | None) -> None:
    found = create(derived(expression, 1))
    at = "spec.devices.requests[0].exactly.derivedAttributes[0].expression"
    assert found == ([f'{at}: Invalid value: "{expression}": {problem}'] if problem else [])


def test_derived_attribute_lists_need_their_gate() -> None:
    off = gates.ALL.switched({"DRAListTypeAttributes": False})
    (found,) = create(derived("['a']", 1), gates=off)
    assert found.endswith("must evaluate to a primitive scalar (string, integer, boolean, semver), not list(string)")


def test_constraint_without_consumable_capacity() -> None:
    document = changed(CLAIM, setting("spec.devices.constraints", [{"distinctAttribute": "a/b"}]))
    off = gates.ALL.switched({"DRAConsumableCapacity": False})
    assert create(document, gates=off) == ["spec.devices.constraints[0].matchAttribute: Required value"]


def test_v1beta1_paths_are_those_of_the_client_for_declared_rules() -> None:
    request = {"name": "one", "deviceClassName": "!", "allocationMode": "Most"}
    document = {**CLAIM, "apiVersion": "resource.k8s.io/v1beta1", "spec": {"devices": {"requests": [request]}}}
    fields = [error.partition(": ")[0] for error in create(document)]
    assert fields == [
        "spec.devices.requests[0].exactly.deviceClassName",
        "spec.devices.requests[0].allocationMode",
    ]


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({"resource.kubernetes.io/admin-access": "true"}, [], id="labelled"),
        pytest.param(None, [], id="unknown-namespace-is-not-judged"),
        pytest.param(
            {},
            [f"spec.devices.requests[0].adminAccess: {UNLABELLED}"],
            id="not-labelled",
        ),
    ],
)
def test_admin_access(labels: dict[str, str] | None, want: list[str]) -> None:
    document = changed(CLAIM, setting(f"{EXACTLY}.adminAccess", True))
    assert create(document, namespace_labels=labels) == want


def test_spec_is_immutable() -> None:
    new = changed(stored(CLAIM), setting("spec.devices.requests.0.name", "other"))
    assert update(new, stored(CLAIM)) == ["spec: Invalid value: null: field is immutable"]


def test_stored_claims_are_not_checked_again() -> None:
    old = changed(stored(CLAIM), setting(f"{EXACTLY}.selectors", [{"cel": {"expression": "not cel"}}]))
    new = changed(old, setting("metadata.labels", {"a": "b"}))
    assert update(new, old) == []


class TestStatus:
    """Changes of a claim's status."""

    unallocated = stored(CLAIM)

    @pytest.mark.parametrize(
        "new",
        [
            pytest.param(ALLOCATED, id="allocate-and-reserve"),
            pytest.param(
                changed(
                    ALLOCATED,
                    setting(
                        "status.devices",
                        [{"driver": "dra.example.com", "pool": "pool", "device": "gpu-0", "data": {"a": 1}}],
                    ),
                ),
                id="report",
            ),
        ],
    )
    def test_good(self, new: Document) -> None:
        assert builders.update_status(new, self.unallocated) == []

    @pytest.mark.parametrize(
        ("path", "value", "want"),
        [
            pytest.param(
                "status.allocation",
                None,
                "status.reservedFor: Forbidden: may not be specified when `allocated` is not set",
                id="reserved-without-allocation",
            ),
            pytest.param(
                "status.reservedFor",
                [{"resource": "pods", "name": "a", "uid": "1"}, {"resource": "pods", "name": "b", "uid": "1"}],
                'status.reservedFor[1]: Duplicate value: {"resource":"pods","name":"b","uid":"1"}',
                id="same-consumer-twice",
            ),
            pytest.param("status.reservedFor.0.uid", "", "status.reservedFor[0].uid: Required value", id="no-uid"),
            pytest.param(
                "status.reservedFor",
                [{"resource": "pods", "name": "a", "uid": str(i)} for i in range(257)],
                "status.reservedFor: Too many: 257: must have at most 256 items",
                id="too-many-consumers",
            ),
            pytest.param(
                "status.allocation.devices.results.0.request",
                "other",
                f'status.allocation.devices.results[0].request: Invalid value: "other": {REFERENCE}',
                id="unknown-request",
            ),
            pytest.param(
                "status.allocation.devices.results.0.driver",
                "",
                "status.allocation.devices.results[0].driver: Required value",
                id="no-driver",
            ),
            pytest.param(
                "status.allocation.devices.results.0.pool",
                "a//b",
                'status.allocation.devices.results[0].pool: Invalid value: "a//b": segment 1: must not be empty',
                id="pool",
            ),
            pytest.param(
                "status.allocation.devices.results.0.device",
                "a.b",
                'status.allocation.devices.results[0].device: Invalid value: "a.b": must not contain dots',
                id="device",
            ),
            pytest.param(
                "status.allocation.devices.results.0.shareID",
                "X",
                'status.allocation.devices.results[0].shareID: Invalid value: "X": '
                "must be a lowercase UUID in 8-4-4-4-12 format",
                id="share-id",
            ),
            pytest.param(
                "status.allocation.devices.results.0.skipNodeOperations",
                ["NodePrepareResources"],
                'status.allocation.devices.results[0].skipNodeOperations: Invalid value: ["NodePrepareResources"]: '
                "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped",
                id="skip-prepare-only",
            ),
            pytest.param(
                "status.allocation.devices.config.0.source",
                "Elsewhere",
                'status.allocation.devices.config[0].source: Unsupported value: "Elsewhere": '
                'supported values: "FromClaim", "FromClass"',
                id="config-source",
            ),
            pytest.param(
                "status.allocation.nodeSelector",
                {},
                "status.allocation.nodeSelector.nodeSelectorTerms: Required value: "
                "must have at least one node selector term",
                id="node-selector",
            ),
            pytest.param(
                "status.devices",
                [{"driver": "dra.example.com", "pool": "pool", "device": "gpu-9"}],
                'status.devices[0]: Invalid value: {"Driver":"dra.example.com","Pool":"pool","Device":"gpu-9",'
                '"ShareID":""}: must be an allocated device in the claim',
                id="report-about-another-device",
            ),
        ],
    )
    def test_one_thing_wrong(self, path: str, value: Any, want: str) -> None:
        assert builders.update_status(changed(ALLOCATED, setting(path, value)), self.unallocated) == [want]

    def test_allocation_cannot_be_changed(self) -> None:
        new = changed(ALLOCATED, setting("status.allocation.devices.results.0.device", "gpu-1"))
        want = "status.allocation: Invalid value: null: field cannot be modified once set"
        assert builders.update_status(new, ALLOCATED) == [want]

    def test_deallocation_drops_reports(self) -> None:
        report = [{"driver": "dra.example.com", "pool": "pool", "device": "gpu-0"}]
        old = changed(ALLOCATED, setting("status.devices", report))
        new = changed(old, lambda document: document["status"].update(allocation=None, reservedFor=[]))
        assert builders.update_status(new, old) == []

    def test_no_new_consumers_while_deleted(self) -> None:
        old = changed(ALLOCATED, setting("metadata.deletionTimestamp", "2001-02-03T04:05:06Z"))
        added = [*ALLOCATED["status"]["reservedFor"], {"resource": "pods", "name": "late", "uid": "2"}]
        new = changed(old, setting("status.reservedFor", added))
        want = (
            "status.reservedFor: Forbidden: new entries may not be added while "
            "`deallocationRequested` or `deletionTimestamp` are set"
        )
        assert builders.update_status(new, old) == [want]
        assert builders.update_status(changed(old, setting("status.reservedFor", [])), old) == []

    def test_admin_access_is_only_judged_when_granted(self) -> None:
        new = changed(ALLOCATED, setting("status.allocation.devices.results.0.adminAccess", True))
        granted = builders.update_status(new, self.unallocated)
        assert [error.partition(":")[0] for error in granted] == ["status.allocation.devices.results[0].adminAccess"]
        assert builders.update_status(changed(new, setting("status.reservedFor", [])), new) == []


def test_parameters_are_shown_in_the_order_of_the_client() -> None:
    opaque = devices.OpaqueDeviceConfiguration(driver="a.com", parameters={"kind": "A", "a": "<b>"})
    assert rendering.internal(opaque) == '{"Driver":"a.com","Parameters":{"kind":"A","a":"\\u003cb\\u003e"}}'
