"""Names: what is accepted, and upstream's exact messages for what is not."""

from collections.abc import Callable

import pytest

from drachma.values import names

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
CASELESS = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'Example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
    "is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
KEY_NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
C_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
    "'[A-Za-z_][A-Za-z0-9_]*')"
)
UID = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
    "characters"
)
UUID = "123e4567-e89b-12d3-a456-426614174000"

CASES = [
    pytest.param(names.dns1123_label, "gpu-0", (), id="label"),
    pytest.param(names.dns1123_label, "a" * 63, (), id="label-of-63"),
    pytest.param(names.dns1123_label, "a" * 64, ("must be no more than 63 characters",), id="label-of-64"),
    pytest.param(names.dns1123_label, "a.b", ("must not contain dots",), id="label-with-dot"),
    pytest.param(names.dns1123_label, "", (LABEL,), id="label-empty"),
    pytest.param(names.dns1123_label, "GPU", (LABEL,), id="label-with-capitals"),
    pytest.param(names.dns1123_label, "gpu-", (LABEL,), id="label-with-dash-at-the-end"),
    pytest.param(names.dns1123_label, "gpu\n", (LABEL,), id="label-with-newline"),
    pytest.param(names.dns1123_label, "١", (LABEL,), id="label-with-arabic-digit"),
    pytest.param(
        names.dns1123_label,
        "é" * 32,
        ("must be no more than 63 characters", LABEL),
        id="label-length-counts-bytes",
    ),
    pytest.param(names.dns1123_subdomain, "gpu.example.com", (), id="subdomain"),
    pytest.param(names.dns1123_subdomain, "a" * 254, ("must be no more than 253 characters",), id="subdomain-of-254"),
    pytest.param(names.dns1123_subdomain, "a..b", (SUBDOMAIN,), id="subdomain-with-empty-label"),
    pytest.param(names.dns1123_subdomain, "Example.com", (SUBDOMAIN,), id="subdomain-with-capital"),
    pytest.param(names.dns1123_subdomain_caseless, "Example.com", (), id="caseless-with-capital"),
    pytest.param(names.dns1123_subdomain_caseless, "-", (CASELESS,), id="caseless-dash"),
    pytest.param(names.driver_name, "GPU.example.com", (), id="driver-with-capitals"),
    pytest.param(names.driver_name, "gpu_example", (SUBDOMAIN,), id="driver-with-underscore"),
    pytest.param(names.dns1035_label, "web", (), id="label-1035"),
    pytest.param(names.dns1035_label, "1web", (LABEL_1035,), id="label-1035-with-digit-first"),
    pytest.param(names.qualified_name, "example.com/My.name_1", (), id="qualified"),
    pytest.param(names.qualified_name, "name", (), id="qualified-without-prefix"),
    pytest.param(
        names.qualified_name, "", ("name part must be non-empty", f"name part {KEY_NAME}"), id="qualified-empty"
    ),
    pytest.param(names.qualified_name, "/a", ("prefix part must be non-empty",), id="qualified-empty-prefix"),
    pytest.param(names.qualified_name, "A/a", (f"prefix part {SUBDOMAIN}",), id="qualified-bad-prefix"),
    pytest.param(
        names.qualified_name,
        "a" * 254 + "/a",
        ("prefix part must be no more than 253 bytes",),
        id="qualified-long-prefix",
    ),
    pytest.param(
        names.qualified_name,
        "a/" + "b" * 64,
        ("name part must be no more than 63 bytes",),
        id="qualified-long-name",
    ),
    pytest.param(
        names.qualified_name,
        "a/b/c",
        (
            f"a valid label key {KEY_NAME} with an optional DNS subdomain prefix and '/' "  # noqa: ISC004
            "(e.g. 'example.com/MyName')",
        ),
        id="qualified-two-slashes",
    ),
    pytest.param(names.label_value, "", (), id="value-empty"),
    pytest.param(names.label_value, "A_b.c-1", (), id="value"),
    pytest.param(names.label_value, "a b", (VALUE,), id="value-with-space"),
    pytest.param(names.label_value, "a" * 64, ("must be no more than 63 bytes",), id="value-of-64"),
    pytest.param(names.c_identifier, "_My1", (), id="identifier"),
    pytest.param(names.c_identifier, "1a", (C_IDENTIFIER,), id="identifier-with-digit-first"),
    pytest.param(names.c_identifier, "a-b", (C_IDENTIFIER,), id="identifier-with-dash"),
    pytest.param(names.c_identifier, "", (C_IDENTIFIER,), id="identifier-empty"),
    pytest.param(names.extended_resource_name, "example.com/gpu", (), id="extended"),
    pytest.param(
        names.extended_resource_name,
        "gpu",
        ("a name must be a domain-prefixed path, such as 'example.com/my-prop'",),
        id="extended-without-domain",
    ),
    pytest.param(
        names.extended_resource_name,
        "requests.kubernetes.io/gpu",
        ('must not have "kubernetes.io/" domain', 'must not have "requests." prefix'),
        id="extended-native-and-quota",
    ),
    pytest.param(
        names.extended_resource_name,
        "Example.com/gpu",
        (f"prefix part {SUBDOMAIN}",),
        id="extended-with-capital",
    ),
    pytest.param(names.resource_pool_name, "node-1/gpus", (), id="pool"),
    pytest.param(names.resource_pool_name, "a//b", ("segment 1: must not be empty",), id="pool-empty-segment"),
    pytest.param(names.resource_pool_name, "A/b", (f"segment 0: {SUBDOMAIN}",), id="pool-bad-segment"),
    pytest.param(names.path_segment_name, "any thing", (), id="segment"),
    pytest.param(names.path_segment_name, "..", ("may not be '..'",), id="segment-dots"),
    pytest.param(
        names.path_segment_name, "a/b%", ("may not contain '/'", "may not contain '%'"), id="segment-slash-percent"
    ),
    pytest.param(names.uuid, UUID, (), id="uuid"),
    pytest.param(names.uuid, UUID.upper(), ("must be a lowercase UUID in 8-4-4-4-12 format",), id="uuid-with-capitals"),
    pytest.param(names.uid, UUID, (), id="uid"),
    pytest.param(names.uid, "x", ("error validating uid: invalid UUID length: 1",), id="uid-too-short"),
    pytest.param(names.uid, "g" + UUID[1:], ("error validating uid: invalid UUID format",), id="uid-not-hex"),
    pytest.param(names.uid, UUID.upper(), (UID,), id="uid-with-capitals"),
    pytest.param(names.uid, UUID.replace("-", ""), (UID,), id="uid-without-dashes"),
    pytest.param(names.uid, "{" + UUID + "}", (UID,), id="uid-in-braces"),
    pytest.param(
        names.uid, "(" + UUID + ")", ("error validating uid: invalid bracketed UUID format",), id="uid-in-parens"
    ),
    pytest.param(names.uid, "urn:uuid:" + UUID, (UID,), id="uid-as-urn"),
    pytest.param(
        names.uid,
        "urn-uuid-" + UUID,
        ('error validating uid: invalid urn prefix: "urn-uuid-"',),
        id="uid-as-bad-urn",
    ),
]


@pytest.mark.parametrize(("check", "text", "want_problems"), CASES)
def test_problems(check: Callable[[str], names.Problems], text: str, want_problems: tuple[str, ...]) -> None:
    assert check(text) == want_problems


@pytest.mark.parametrize("check", [names.dns1123_label, names.dns1123_subdomain])
def test_length_can_be_worded_in_bytes(check: Callable[..., names.Problems]) -> None:
    assert check("a" * 300, unit="bytes")[0].endswith(" bytes")


def test_label_key_is_a_qualified_name() -> None:
    assert names.label_key("a/b/c") == names.qualified_name("a/b/c")


@pytest.mark.parametrize(
    ("text", "want_native", "want_huge"),
    [
        pytest.param("cpu", True, False, id="cpu"),
        pytest.param("hugepages-2Mi", True, True, id="huge-pages"),
        pytest.param("example.com/gpu", False, False, id="extended"),
        pytest.param("x.kubernetes.io/y", True, False, id="kubernetes-subdomain"),
    ],
)
def test_kinds_of_resources(text: str, want_native: bool, want_huge: bool) -> None:
    assert names.is_native_resource(text) is want_native
    assert names.is_huge_page_resource(text) is want_huge


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("claim-", "claia", id="dash"),
        pytest.param("claim", "claim", id="no-dash"),
        pytest.param("-", "-", id="lone-dash"),
    ],
)
def test_mask_trailing_dash(text: str, want: str) -> None:
    assert names.mask_trailing_dash(text) == want


@pytest.mark.parametrize(
    ("text", "limit", "want"),
    [
        pytest.param("abcd", 4, False, id="as-long"),
        pytest.param("abcde", 4, True, id="longer"),
        pytest.param("\N{EURO SIGN}", 3, False, id="as-long-in-bytes"),
        pytest.param("\N{EURO SIGN}a", 3, True, id="longer-in-bytes-only"),
        pytest.param("\N{GRINNING FACE}", 4, False, id="longest-character"),
        pytest.param("\N{GRINNING FACE}", 3, True, id="longest-character-too-many"),
        pytest.param("", 0, False, id="empty"),
    ],
)
def test_lengths_are_compared_in_bytes(text: str, limit: int, want: bool) -> None:
    assert names.is_longer(text, limit) is want
