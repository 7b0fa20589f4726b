"""Laws of the values: order, round trips, exact arithmetic, hashing."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from drachma import errors
from drachma.values import label_syntax, labels, quantity, semver

SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 10**3), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
    "e3": Fraction(10**3), "E-3": Fraction(1, 10**3), "e+2": Fraction(10**2), "e20": Fraction(10**20),
}  # fmt: skip
INT64_MAX = 2**63 - 1

numbers = st.from_regex(r"[+-]?[0-9]{1,22}(\.[0-9]{0,12})?", fullmatch=True)
spellings = st.tuples(numbers, st.sampled_from(sorted(SUFFIXES)))
quantities = spellings.map(lambda parts: quantity.Quantity.parse("".join(parts)))
int64s = st.integers(-(2**63), INT64_MAX)
# Upstream has no suffix past exa, so the canonical form of more is not the same number.
printable = quantities.filter(lambda parsed: abs(parsed.nanos) < 10**21 * 10**9)

labels_strategy = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["", "1", "2", "10"]))
identifiers = st.from_regex(r"0|[1-9][0-9]{0,3}|[0-9]{0,2}[A-Za-z-][0-9A-Za-z-]{0,3}", fullmatch=True)
versions = st.builds(
    semver.SemVer,
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 2**64 - 1),
    prerelease=st.lists(identifiers, max_size=3),
    build=st.lists(st.from_regex(r"[0-9A-Za-z-]{1,4}", fullmatch=True), max_size=2),
)


@given(spellings)
def test_the_value_is_the_number_rounded_away_from_zero_to_nanos(parts: tuple[str, str]) -> None:
    number, suffix = parts
    exact = Fraction(number) * SUFFIXES[suffix] * 10**9
    nanos = -(-abs(exact.numerator) // exact.denominator)
    if suffix.endswith("i"):
        nanos = min(nanos, INT64_MAX * 10**9)
    parsed = quantity.Quantity.parse(number + suffix)
    assert parsed.nanos == (nanos if exact >= 0 else -nanos)
    assert parsed.text == number + suffix


@given(printable)
def test_the_canonical_form_is_the_same_quantity(parsed: quantity.Quantity) -> None:
    again = quantity.Quantity.parse(str(parsed))
    assert again == parsed
    assert str(again) == str(parsed)


@given(quantities, quantities)
def test_order_is_total_and_that_of_the_numbers(left: quantity.Quantity, right: quantity.Quantity) -> None:
    assert (left < right) + (left == right) + (left > right) == 1
    assert (left <= right) is (left.nanos <= right.nanos)
    assert (left >= right) is (right <= left)
    assert (left < right) is (right > left)


@given(quantities, quantities, quantities)
def test_order_is_transitive(first: quantity.Quantity, second: quantity.Quantity, third: quantity.Quantity) -> None:
    low, middle, high = sorted([first, second, third])
    assert low <= middle <= high
    assert low <= high


@given(quantities, quantities)
def test_hash_agrees_with_equality(left: quantity.Quantity, right: quantity.Quantity) -> None:
    if left == right:
        assert hash(left) == hash(right)
    # The same amount, reached another way, in another format.
    same = quantity.Quantity.parse("0") + left
    assert same == left
    assert hash(same) == hash(left)


@given(quantities, quantities)
def test_add_and_subtract_are_exact(left: quantity.Quantity, right: quantity.Quantity) -> None:
    total = left + right
    assert total.nanos == left.nanos + right.nanos
    assert total - right == left
    assert total == right + left
    assert left - right == left + -right


@given(printable, st.integers(-1000, 1000))
def test_multiply_is_repeated_addition(parsed: quantity.Quantity, factor: int) -> None:
    product = parsed * factor
    assert product.nanos == parsed.nanos * factor
    assert product + parsed == parsed * (factor + 1)


@given(quantities, quantities)
def test_the_left_operand_gives_the_format_unless_it_is_zero(left: quantity.Quantity, right: quantity.Quantity) -> None:
    assert (left + right).format is (left if left.sign else right).format


@given(int64s)
def test_from_int_is_exact(number: int) -> None:
    made = quantity.Quantity.from_int(number)
    assert made.exact_int64() == made.as_int64() == number
    assert quantity.Quantity.parse(str(number)) == made


@given(quantities)
def test_an_exact_integer_is_the_value(parsed: quantity.Quantity) -> None:
    exact = parsed.exact_int64()
    if exact is not None:
        assert exact * 10**9 == parsed.nanos
        assert parsed.as_int64() == exact


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP _x١", max_size=12))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        parsed = quantity.Quantity.parse(text)
    except errors.InvalidValueError:
        return
    assert parsed.text == text
    assert quantity.Quantity.parse(str(parsed)) == parsed or abs(parsed.nanos) >= 10**30


@given(versions)
def test_version_round_trip(version: semver.SemVer) -> None:
    again = semver.SemVer.parse(str(version))
    assert again == version
    assert str(again) == str(version)
    assert again.build == version.build
    assert semver.SemVer.parse_tolerant(f"v{version}") == version


@given(versions, versions)
def test_version_order_is_total_and_agrees_with_hash(left: semver.SemVer, right: semver.SemVer) -> None:
    assert (left < right) + (left == right) + (left > right) == 1
    assert (left <= right) is not (left > right)
    if left == right:
        assert hash(left) == hash(right)
        assert left.prerelease == right.prerelease


@given(versions)
def test_a_prerelease_comes_before_its_release(version: semver.SemVer) -> None:
    release = semver.SemVer(version.major, version.minor, version.patch)
    assert (version < release) is bool(version.prerelease)


@st.composite
def selector_texts(draw: st.DrawFn) -> str:
    key = draw(st.sampled_from(["a", "b", "c"]))
    values = draw(st.lists(st.sampled_from(["", "1", "2", "10"]), min_size=1, max_size=3))
    form = draw(st.sampled_from(["{k}", "!{k}", "{k}={v}", "{k}!={v}", "{k} in ({vs})", "{k} notin ({vs})"]))
    return form.format(k=key, v=values[0], vs=",".join(values))


@given(st.lists(selector_texts(), max_size=3), labels_strategy)
def test_a_selector_matches_if_each_of_its_requirements_does(texts: list[str], found: dict[str, str]) -> None:
    together = label_syntax.parse(",".join(texts))
    assert together.matches(found) is all(label_syntax.parse(text).matches(found) for text in texts)
    assert label_syntax.parse(str(together)) == together


@given(st.sampled_from(["a", "b"]), st.lists(st.sampled_from(["", "1", "2"]), min_size=1), labels_strategy)
def test_not_in_is_the_opposite_of_in(key: str, values: list[str], found: dict[str, str]) -> None:
    within = labels.Selector.from_parts({}, [(key, "In", values)])
    outside = labels.Selector.from_parts({}, [(key, "NotIn", values)])
    assert within.matches(found) is not outside.matches(found)


@given(st.text(alphabet="abin(),=!<> \0", max_size=12))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    try:
        selector = label_syntax.parse(text)
    except errors.InvalidValueError:
        return
    assert label_syntax.parse(str(selector)) == selector
