"""Quantity: spelling in, canonical form out, and arithmetic, all as Kubernetes has them."""

import copy
import itertools
import pickle

import pytest

from drachma import errors
from drachma.values import notation, quantity

SI = quantity.Format.DECIMAL_SI
BINARY = quantity.Format.BINARY_SI
EXPONENT = quantity.Format.DECIMAL_EXPONENT
NANO = 1
UNIT = 10**9
INT64_MAX = 2**63 - 1

WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_NUMBER = "unable to parse numeric part of quantity"
WRONG_SUFFIX = "unable to parse quantity's suffix"

SPELLINGS = [
    # whole numbers
    pytest.param("0", "0", SI, 0, id="zero"),
    pytest.param("-0", "0", SI, 0, id="minus-zero"),
    pytest.param("00", "0", SI, 0, id="two-zeros"),
    pytest.param("1", "1", SI, UNIT, id="one"),
    pytest.param("+1", "+1", SI, UNIT, id="plus-sign-is-kept"),
    pytest.param("-1", "-1", SI, -UNIT, id="minus-one"),
    pytest.param("007", "007", SI, 7 * UNIT, id="leading-zeros-are-kept"),
    pytest.param("100", "100", SI, 100 * UNIT, id="hundred"),
    pytest.param("1000", "1k", SI, 1000 * UNIT, id="thousand-becomes-1k"),
    pytest.param("-1000", "-1k", SI, -1000 * UNIT, id="minus-thousand-becomes-1k"),
    pytest.param("+1000", "1k", SI, 1000 * UNIT, id="plus-sign-goes-when-rewritten"),
    pytest.param("1500", "1500", SI, 1500 * UNIT, id="1500-has-no-shorter-form"),
    pytest.param("1000000", "1M", SI, 10**6 * UNIT, id="million-becomes-1M"),
    pytest.param("123456789012345678", "123456789012345678", SI, 123456789012345678 * UNIT, id="18-digits"),
    pytest.param("1" + "0" * 30, "1", SI, 10**30 * UNIT, id="beyond-exa-has-no-suffix"),
    # points
    pytest.param("1.", "1.", SI, UNIT, id="point-without-fraction-is-kept"),
    pytest.param(".5", "500m", SI, UNIT // 2, id="fraction-without-number"),
    pytest.param("0.5", "500m", SI, UNIT // 2, id="half"),
    pytest.param("1.5", "1500m", SI, 3 * UNIT // 2, id="one-and-a-half"),
    pytest.param("1.500", "1.500", SI, 3 * UNIT // 2, id="three-decimals-are-kept"),
    pytest.param("0.500", "500m", SI, UNIT // 2, id="three-decimals-after-zero-are-rewritten"),
    pytest.param("1.0", "1", SI, UNIT, id="zero-decimal"),
    pytest.param("-.5", "-500m", SI, -UNIT // 2, id="minus-half"),
    # decimal suffixes
    pytest.param("1n", "1n", SI, NANO, id="nano"),
    pytest.param("1u", "1u", SI, 10**3, id="micro"),
    pytest.param("1m", "1m", SI, 10**6, id="milli"),
    pytest.param("1k", "1k", SI, 10**3 * UNIT, id="kilo"),
    pytest.param("1M", "1M", SI, 10**6 * UNIT, id="mega"),
    pytest.param("1G", "1G", SI, 10**9 * UNIT, id="giga"),
    pytest.param("1T", "1T", SI, 10**12 * UNIT, id="tera"),
    pytest.param("1P", "1P", SI, 10**15 * UNIT, id="peta"),
    pytest.param("1E", "1E", SI, 10**18 * UNIT, id="exa-not-exponent"),
    pytest.param("1000m", "1", SI, UNIT, id="thousand-milli-becomes-1"),
    pytest.param("1500m", "1500m", SI, 3 * UNIT // 2, id="1500-milli"),
    pytest.param("0.1k", "100", SI, 100 * UNIT, id="tenth-of-kilo"),
    pytest.param("1.5G", "1500M", SI, 1500 * 10**6 * UNIT, id="fraction-of-giga"),
    pytest.param("1000E", "1", SI, 10**21 * UNIT, id="zetta-has-no-suffix"),
    # binary suffixes
    pytest.param("1Ki", "1Ki", BINARY, 1024 * UNIT, id="kibi"),
    pytest.param("1Mi", "1Mi", BINARY, 1024**2 * UNIT, id="mebi"),
    pytest.param("1Gi", "1Gi", BINARY, 1024**3 * UNIT, id="gibi"),
    pytest.param("1Ti", "1Ti", BINARY, 1024**4 * UNIT, id="tebi"),
    pytest.param("1Pi", "1Pi", BINARY, 1024**5 * UNIT, id="pebi"),
    pytest.param("1Ei", "1Ei", BINARY, 1024**6 * UNIT, id="exbi"),
    pytest.param("0.5Gi", "512Mi", BINARY, 1024**3 // 2 * UNIT, id="half-gibi-becomes-512Mi"),
    pytest.param("1024Ki", "1Mi", BINARY, 1024**2 * UNIT, id="1024Ki-becomes-1Mi"),
    pytest.param("1025Ki", "1025Ki", BINARY, 1025 * 1024 * UNIT, id="1025Ki"),
    pytest.param("1.5Ki", "1536", BINARY, 1536 * UNIT, id="one-and-a-half-kibi-becomes-1536"),
    pytest.param("-1.5Gi", "-1536Mi", BINARY, -1536 * 1024**2 * UNIT, id="negative-binary-fraction"),
    pytest.param("0.5Ki", "512", BINARY, 512 * UNIT, id="binary-below-1024-has-no-suffix"),
    pytest.param("0.1Ki", "102400m", BINARY, 102_400 * 10**6, id="fraction-of-bytes-turns-decimal"),
    pytest.param("0.0001Ki", "102400u", SI, 102_400 * 10**3, id="binary-below-one-is-decimal"),
    pytest.param("1.1Gi", "1181116006400m", BINARY, 1181116006400 * 10**6, id="inexact-gibi-turns-decimal"),
    pytest.param("0Ki", "0", BINARY, 0, id="zero-kibi"),
    # exponents
    pytest.param("1e3", "1e3", EXPONENT, 1000 * UNIT, id="exponent"),
    pytest.param("1E3", "1E3", EXPONENT, 1000 * UNIT, id="capital-exponent-is-kept"),
    pytest.param("1e+3", "1e+3", EXPONENT, 1000 * UNIT, id="signed-exponent-is-kept"),
    pytest.param("12e-3", "12e-3", EXPONENT, 12 * 10**6, id="negative-exponent"),
    pytest.param("1e0", "1e0", EXPONENT, UNIT, id="exponent-zero-is-kept"),
    pytest.param("1000e0", "1e3", EXPONENT, 1000 * UNIT, id="exponent-zero-is-rewritten"),
    pytest.param("1e4", "10e3", EXPONENT, 10**4 * UNIT, id="exponent-becomes-multiple-of-three"),
    pytest.param("1.5e3", "1500", EXPONENT, 1500 * UNIT, id="exponent-disappears"),
    pytest.param("1e-9", "1e-9", EXPONENT, NANO, id="exponent-of-nano"),
    pytest.param("1e33", "1e33", EXPONENT, 10**33 * UNIT, id="exponent-beyond-exa"),
    pytest.param("1e4294967299", "1e4294967299", EXPONENT, 1000 * UNIT, id="exponent-wraps-at-32-bits"),
    # rounding up to nano
    pytest.param("0.1n", "1n", SI, NANO, id="tenth-of-nano-rounds-up"),
    pytest.param("-0.1n", "-1n", SI, -NANO, id="minus-tenth-of-nano-rounds-down"),
    pytest.param("1.0000000001", "1000000001n", SI, UNIT + NANO, id="tenth-decimal-rounds-up"),
    pytest.param("1e-1000000000", "1e-9", EXPONENT, NANO, id="tiny-exponent-rounds-up"),
    pytest.param("0.0000000000001Ki", "1n", SI, NANO, id="tiny-binary-rounds-up"),
    # caps
    pytest.param("7Ei", "7Ei", BINARY, 7 * 1024**6 * UNIT, id="seven-exbi"),
    pytest.param("8Ei", "9223372036854775807", BINARY, INT64_MAX * UNIT, id="eight-exbi-is-capped"),
    pytest.param("-8Ei", "-9223372036854775807", BINARY, -INT64_MAX * UNIT, id="minus-eight-exbi-is-capped"),
    pytest.param("10E", "10E", SI, 10**19 * UNIT, id="decimal-is-not-capped"),
    # a number without digits
    pytest.param("-", "0", SI, 0, id="lone-minus-is-zero"),
    pytest.param(".", "0", SI, 0, id="lone-point-is-zero"),
    pytest.param("Ki", "0", BINARY, 0, id="lone-suffix-is-zero"),
]

REFUSED = [
    pytest.param("", WRONG_FORMAT, id="empty"),
    pytest.param("1K", WRONG_SUFFIX, id="capital-k"),
    pytest.param("1 Gi", WRONG_FORMAT, id="space-before-suffix"),
    pytest.param(" 1", WRONG_FORMAT, id="leading-space"),
    pytest.param("1\n", WRONG_FORMAT, id="trailing-newline"),
    pytest.param("1_000", WRONG_FORMAT, id="underscore"),
    pytest.param("1,5", WRONG_FORMAT, id="comma"),
    pytest.param("1e3Ki", WRONG_FORMAT, id="exponent-and-suffix"),
    pytest.param("1e", WRONG_SUFFIX, id="exponent-without-digits"),
    pytest.param("1e+", WRONG_SUFFIX, id="exponent-with-only-a-sign"),
    pytest.param("1e1.5", WRONG_FORMAT, id="fractional-exponent"),
    pytest.param("1e9223372036854775808", WRONG_SUFFIX, id="exponent-beyond-64-bits"),
    pytest.param("1ki", WRONG_SUFFIX, id="small-kibi"),
    pytest.param("1mi", WRONG_SUFFIX, id="small-mebi"),
    pytest.param("1i", WRONG_SUFFIX, id="lone-i"),
    pytest.param("1kk", WRONG_SUFFIX, id="two-suffixes"),
    pytest.param("1GB", WRONG_FORMAT, id="bytes"),
    pytest.param("1.1.1", WRONG_FORMAT, id="two-points"),
    pytest.param("--1", WRONG_SUFFIX, id="two-signs"),
    pytest.param("1-", WRONG_SUFFIX, id="sign-behind"),
    pytest.param("0x10", WRONG_FORMAT, id="hexadecimal"),
    pytest.param("NaN", WRONG_FORMAT, id="not-a-number"),
    pytest.param("١", WRONG_FORMAT, id="arabic-digit"),
    pytest.param("１Gi", WRONG_FORMAT, id="full-width-digit"),
    pytest.param("1²", WRONG_FORMAT, id="superscript-digit"),
    pytest.param("1µ", WRONG_FORMAT, id="micro-sign"),
    pytest.param(".Pi", WRONG_NUMBER, id="no-digits-before-pebi"),
    pytest.param("-Ei", WRONG_NUMBER, id="sign-before-exbi"),
    pytest.param("e-10", WRONG_NUMBER, id="no-digits-before-tiny-exponent"),
]


def parse(text: str) -> quantity.Quantity:
    return quantity.Quantity.parse(text)


@pytest.mark.parametrize(("text", "want_canonical", "want_format", "want_nanos"), SPELLINGS)
def test_spelling(text: str, want_canonical: str, want_format: quantity.Format, want_nanos: int) -> None:
    parsed = parse(text)
    assert str(parsed) == want_canonical
    assert parsed.format is want_format
    assert parsed.nanos == want_nanos
    assert parsed.text == text


@pytest.mark.parametrize(("text", "want_message"), REFUSED)
def test_refused(text: str, want_message: str) -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        parse(text)
    assert str(caught.value) == want_message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1" * (notation.MAX_DIGITS + 1), id="digits"),
        pytest.param("1." + "1" * notation.MAX_DIGITS, id="fraction"),
        pytest.param("1" * (notation.MAX_DIGITS + 1) + "Ki", id="binary-digits"),
        pytest.param(f"1e{notation.MAX_DIGITS + 1}", id="exponent"),
        pytest.param("1e2000000000", id="exponent-that-would-fill-memory"),
    ],
)
def test_refused_as_too_large(text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=r"^quantity '.*': more than 2000 digits or an exponent"):
        parse(text)


def test_the_largest_accepted_quantity_computes() -> None:
    largest = parse("9" * notation.MAX_DIGITS + f"e{notation.MAX_DIGITS}")
    assert largest.nanos == (10**notation.MAX_DIGITS - 1) * 10 ** (notation.MAX_DIGITS + 9)
    assert str(largest - largest) == "0"
    assert largest + parse("1n") > largest


@pytest.mark.parametrize("text", [pytest.param("0e2000000000", id="up"), pytest.param("0.0e-2000000000", id="down")])
def test_zero_with_a_far_exponent_is_cheap(text: str) -> None:
    assert str(parse(text) + parse("1")) == "1"
    assert parse(text).as_int64() == 0


def test_long_wrong_text_fails_in_linear_time() -> None:
    with pytest.raises(errors.InvalidValueError, match="regular expression"):
        parse("0" * 200_000 + "x")


@pytest.mark.parametrize(
    ("left", "right", "want_sum", "want_format"),
    [
        pytest.param("1Gi", "1Gi", "2Gi", BINARY, id="binary"),
        pytest.param("1Gi", "1", "1073741825", BINARY, id="binary-and-one"),
        pytest.param("1Gi", "1m", "1073741824001m", BINARY, id="binary-and-milli-prints-decimal"),
        pytest.param("1k", "1Ki", "2024", SI, id="left-format-wins"),
        pytest.param("1Ki", "1k", "2024", BINARY, id="left-binary-wins"),
        pytest.param("24", "1000Ki", "1024024", SI, id="decimal-left"),
        pytest.param("0", "1Gi", "1Gi", BINARY, id="zero-takes-the-format-of-the-other"),
        pytest.param("0Ki", "1e3", "1e3", EXPONENT, id="binary-zero-takes-the-format-of-the-other"),
        pytest.param("1Gi", "0", "1Gi", BINARY, id="adding-zero-keeps-the-format"),
        pytest.param("500m", "500m", "1", SI, id="halves"),
        pytest.param("1n", "1E", "1000000000000000000000000001n", SI, id="nano-and-exa-stay-exact"),
        pytest.param("7Ei", "7Ei", "14Ei", BINARY, id="sums-are-not-capped"),
        pytest.param("-1Gi", "1Gi", "0", BINARY, id="opposites"),
        pytest.param("+5", "0", "5", SI, id="a-sum-loses-the-kept-spelling"),
    ],
)
def test_add(left: str, right: str, want_sum: str, want_format: quantity.Format) -> None:
    total = parse(left) + parse(right)
    assert str(total) == want_sum
    assert total.text == want_sum
    assert total.format is want_format
    assert total.nanos == parse(left).nanos + parse(right).nanos


@pytest.mark.parametrize(
    ("left", "right", "want_difference", "want_format"),
    [
        pytest.param("3Gi", "1Gi", "2Gi", BINARY, id="binary"),
        pytest.param("1", "1500m", "-500m", SI, id="below-zero"),
        pytest.param("0", "1Gi", "-1Gi", BINARY, id="zero-takes-the-format-of-the-other"),
        pytest.param("1Gi", "1Gi", "0", BINARY, id="itself"),
    ],
)
def test_subtract(left: str, right: str, want_difference: str, want_format: quantity.Format) -> None:
    difference = parse(left) - parse(right)
    assert str(difference) == want_difference
    assert difference.format is want_format


@pytest.mark.parametrize(
    ("text", "factor", "want_product"),
    [
        pytest.param("1Gi", 3, "3Gi", id="binary"),
        pytest.param("512Mi", 2, "1Gi", id="suffix-grows"),
        pytest.param("100m", 10, "1", id="milli"),
        pytest.param("1Gi", 0, "0", id="by-zero"),
        pytest.param("1Gi", -1, "-1Gi", id="by-minus-one"),
        pytest.param("1E", 10**18, "1", id="beyond-exa-has-no-suffix"),
        pytest.param("4Gi", -(2**31), "-9223372036854775808", id="least-int64-has-no-suffix"),
    ],
)
def test_multiply(text: str, factor: int, want_product: str) -> None:
    assert str(parse(text) * factor) == want_product
    assert factor * parse(text) == parse(text) * factor


def test_negate() -> None:
    assert str(-parse("1Gi")) == "-1Gi"
    assert str(-parse("-100m")) == "100m"
    assert -parse("0") == parse("0")


def test_equality_and_hash_are_by_value() -> None:
    assert parse("0.5Gi") == parse("512Mi")
    assert hash(parse("0.5Gi")) == hash(parse("512Mi"))
    assert len({parse("1"), parse("1000m"), parse("1e0"), parse("1.0")}) == 1
    assert parse("1") != parse("1m")


def test_order() -> None:
    texts = ["-8Ei", "-1", "-1n", "0", "1n", "999m", "1", "1k", "1Ki", "1e4", "1G", "1Gi", "1E", "1Ei", "8Ei", "10E"]
    parsed = [parse(text) for text in texts]
    assert all(left < right and right > left for left, right in itertools.pairwise(parsed))
    assert parse("1") <= parse("1000m") <= parse("1")
    assert parse("1") >= parse("1000m")


def test_other_types_neither_equal_nor_compare() -> None:
    one = parse("1")
    assert one != 1
    assert one != "1"
    with pytest.raises(TypeError):
        _ = one < 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = one >= "1"  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = one + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = one - 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = one * 1.5  # type: ignore[operator]


@pytest.mark.parametrize("name", ["text", "format", "nanos", "sign", "unknown"])
def test_immutable(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(parse("1"), name, "2")


def test_copies_are_equal() -> None:
    original = parse("0.5Gi")
    for duplicate in (copy.copy(original), copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        assert duplicate == original
        assert duplicate.text == "0.5Gi"
        assert str(duplicate) == "512Mi"


def test_repr_shows_the_text() -> None:
    assert repr(parse("0.5Gi")) == "Quantity('0.5Gi')"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1000", 1000, id="whole"),
        pytest.param("1k", 1000, id="kilo"),
        pytest.param("1Ti", 2**40, id="tebi"),
        pytest.param("9E", 9 * 10**18, id="nine-exa"),
        pytest.param("10E", None, id="beyond-int64"),
        pytest.param("500m", None, id="fraction"),
        pytest.param("1000m", None, id="whole-but-scaled"),
        pytest.param("1Pi", None, id="whole-but-held-as-decimal"),
        pytest.param("0.5Gi", None, id="whole-but-written-with-a-point"),
        pytest.param("0", 0, id="zero"),
    ],
)
def test_exact_int64(text: str, want: int | None) -> None:
    assert parse(text).exact_int64() == want
    assert parse(text).is_integer is (want is not None)


@pytest.mark.parametrize(
    ("text", "want_value", "want_milli"),
    [
        pytest.param("1", 1, 1000, id="one"),
        pytest.param("1500m", 2, 1500, id="value-rounds-up"),
        pytest.param("-1500m", -2, -1500, id="negative-value-rounds-away-from-zero"),
        pytest.param("1n", 1, 1, id="least-rounds-up-to-one"),
        pytest.param("1.5Ki", 1536, 1536000, id="binary-fraction"),
        pytest.param("-0.1Ki", -101, -102400, id="negative-decimal-rounds-towards-plus"),
        pytest.param("8Ei", INT64_MAX, -1000, id="milli-of-the-cap-overflows"),
        pytest.param("1E", 10**18, 0, id="milli-of-exa-does-not-fit"),
        pytest.param("100E", 0, 0, id="beyond-int64"),
    ],
)
def test_value_and_milli_value(text: str, want_value: int, want_milli: int) -> None:
    assert parse(text).as_int64() == want_value
    assert parse(text).milli_value() == want_milli


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1500m", 1.5, id="milli"),
        pytest.param("1Gi", 1073741824.0, id="gibi"),
        pytest.param("-1u", -1e-6, id="negative-micro"),
        pytest.param("1e400", float("inf"), id="beyond-double"),
        pytest.param("0", 0.0, id="zero"),
    ],
)
def test_as_approximate_float(text: str, want: float) -> None:
    assert parse(text).as_approximate_float() == want


def test_sign() -> None:
    assert [parse(text).sign for text in ("-1n", "0", "1n")] == [-1, 0, 1]


@pytest.mark.parametrize(
    ("number", "format_", "want"),
    [
        pytest.param(1000, SI, "1k", id="decimal"),
        pytest.param(1024, BINARY, "1Ki", id="binary"),
        pytest.param(1000, BINARY, "1k", id="binary-below-1024-turns-decimal"),
        pytest.param(1000, EXPONENT, "1e3", id="exponent"),
        pytest.param(0, SI, "0", id="zero"),
        pytest.param(2**63, SI, "9223372036854775808", id="beyond-int64"),
    ],
)
def test_from_int(number: int, format_: quantity.Format, want: str) -> None:
    made = quantity.Quantity.from_int(number, format=format_)
    assert str(made) == made.text == want
    assert made.exact_int64() == (number if number < 2**63 else None)


def test_from_milli() -> None:
    made = quantity.Quantity.from_milli(1500)
    assert str(made) == "1500m"
    assert made == parse("1.5")
