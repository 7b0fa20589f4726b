"""SemVer: strict and tolerant parsing, upstream's messages, precedence."""

import itertools

import pytest

from drachma import errors
from drachma.values import semver

PRECEDENCE = [
    "0.0.0-0",
    "0.0.0",
    "0.0.1",
    "0.1.0",
    "1.0.0-0",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0--",
    "1.0.0-A",
    "1.0.0-a",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.1.0",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0",
    "10.0.0",
    "18446744073709551615.0.0",
]


def refused(text: str) -> str:
    with pytest.raises(errors.InvalidValueError) as caught:
        semver.SemVer.parse(text)
    return str(caught.value)


def refused_tolerant(text: str) -> str:
    with pytest.raises(errors.InvalidValueError) as caught:
        semver.SemVer.parse_tolerant(text)
    return str(caught.value)


def test_parts() -> None:
    version = semver.SemVer.parse("1.22.333-rc-1.0.x+build.007.-")
    assert (version.major, version.minor, version.patch) == (1, 22, 333)
    assert version.prerelease == ("rc-1", "0", "x")
    assert version.build == ("build", "007", "-")
    assert str(version) == "1.22.333-rc-1.0.x+build.007.-"
    assert repr(version) == "SemVer.parse('1.22.333-rc-1.0.x+build.007.-')"


@pytest.mark.parametrize("text", PRECEDENCE)
def test_round_trip(text: str) -> None:
    assert str(semver.SemVer.parse(text)) == text


def test_precedence() -> None:
    versions = [semver.SemVer.parse(text) for text in PRECEDENCE]
    for lower, higher in itertools.combinations(versions, 2):
        assert lower < higher
        assert lower <= higher
        assert higher > lower
        assert higher >= lower
        assert lower != higher


def test_build_metadata_has_no_part_in_comparison() -> None:
    plain, built = semver.SemVer.parse("1.0.0"), semver.SemVer.parse("1.0.0+build.5")
    assert plain == built
    assert hash(plain) == hash(built)
    assert plain <= built <= plain
    assert not plain < built


def test_other_types_neither_equal_nor_compare() -> None:
    version = semver.SemVer.parse("1.0.0")
    assert version != "1.0.0"
    with pytest.raises(TypeError):
        _ = version < "2.0.0"  # type: ignore[operator]


@pytest.mark.parametrize("name", ["major", "minor", "patch", "prerelease", "build"])
def test_immutable(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(semver.SemVer.parse("1.0.0"), name, 2)


@pytest.mark.parametrize(
    ("text", "want_message"),
    [
        pytest.param("", "Version string empty", id="empty"),
        pytest.param("1", "No Major.Minor.Patch elements found", id="major-only"),
        pytest.param("1.2", "No Major.Minor.Patch elements found", id="no-patch"),
        pytest.param("v1.2.3", 'Invalid character(s) found in major number "v1"', id="leading-v"),
        pytest.param(" 1.2.3", 'Invalid character(s) found in major number " 1"', id="leading-space"),
        pytest.param("1.x.3", 'Invalid character(s) found in minor number "x"', id="minor-not-numeric"),
        pytest.param("1.2.3.4", 'Invalid character(s) found in patch number "3.4"', id="four-parts"),
        pytest.param("-1.2.3", 'Invalid character(s) found in major number "-1"', id="negative"),
        pytest.param("1.2.٣", 'Invalid character(s) found in patch number "٣"', id="arabic-digit"),
        pytest.param('1."\n.3', r'Invalid character(s) found in minor number "\"\n"', id="escaped"),
        pytest.param("01.2.3", 'Major number must not contain leading zeroes "01"', id="leading-zero-in-major"),
        pytest.param("1.02.3", 'Minor number must not contain leading zeroes "02"', id="leading-zero-in-minor"),
        pytest.param("1.2.03", 'Patch number must not contain leading zeroes "03"', id="leading-zero-in-patch"),
        pytest.param("1..3", 'strconv.ParseUint: parsing "": invalid syntax', id="empty-minor"),
        pytest.param(
            "18446744073709551616.0.0",
            'strconv.ParseUint: parsing "18446744073709551616": value out of range',
            id="beyond-uint64",
        ),
        pytest.param("1.2.3-", "Prerelease is empty", id="empty-prerelease"),
        pytest.param("1.2.3-a..b", "Prerelease is empty", id="empty-identifier"),
        pytest.param("1.2.3-a_b", 'Invalid character(s) found in prerelease "a_b"', id="underscore"),
        pytest.param(
            "1.2.3-01",
            'Numeric PreRelease version must not contain leading zeroes "01"',
            id="leading-zero-in-prerelease",
        ),
        pytest.param("1.2.3+", "Build meta data is empty", id="empty-build"),
        pytest.param("1.2.3+a+b", 'Invalid character(s) found in build meta data "a+b"', id="two-builds"),
        pytest.param("1.2.3-_+_", 'Invalid character(s) found in prerelease "_"', id="prerelease-first"),
    ],
)
def test_refused(text: str, want_message: str) -> None:
    assert refused(text) == want_message


def test_thousands_of_digits_are_refused_as_out_of_range() -> None:
    assert refused("9" * 5000 + ".0.0").endswith("value out of range")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1.2.3", "1.2.3", id="already-strict"),
        pytest.param("v1.2.3", "1.2.3", id="leading-v"),
        pytest.param("1", "1.0.0", id="major-only"),
        pytest.param("v1.2", "1.2.0", id="no-patch"),
        pytest.param("01.002.0003", "1.2.3", id="leading-zeros"),
        pytest.param("00.0.000", "0.0.0", id="only-zeros"),
        pytest.param("1.2.03-rc.1+b", "1.2.3-rc.1+b", id="prerelease-and-build"),
        pytest.param("1.2.0-rc", "1.2.0-rc", id="zero-patch-with-prerelease"),
    ],
)
def test_tolerant(text: str, want: str) -> None:
    assert str(semver.SemVer.parse_tolerant(text)) == want


@pytest.mark.parametrize(
    ("text", "want_message"),
    [
        pytest.param("1-rc", "short version cannot contain PreRelease/Build meta data", id="short-with-prerelease"),
        pytest.param("1.2+b", "short version cannot contain PreRelease/Build meta data", id="short-with-build"),
        pytest.param("", 'strconv.ParseUint: parsing "": invalid syntax', id="empty"),
        pytest.param("vv1", 'Invalid character(s) found in major number "0v1"', id="two-vs"),
        pytest.param("V1.0.0", 'Invalid character(s) found in major number "0V1"', id="capital-v"),
        pytest.param(" 1.0.0", 'Invalid character(s) found in major number "0 1"', id="leading-space"),
        pytest.param("é.1.2", 'Invalid character(s) found in major number "0é"', id="beyond-ascii"),
    ],
)
def test_tolerant_refused(text: str, want_message: str) -> None:
    assert refused_tolerant(text) == want_message


def test_constructor_checks_its_parts() -> None:
    assert str(semver.SemVer(1, 2, 3, prerelease=["rc", "1"], build=["b"])) == "1.2.3-rc.1+b"
    with pytest.raises(errors.InvalidValueError, match=r"^Minor number -1 is not within 0\.\."):
        semver.SemVer(1, -1, 0)
    with pytest.raises(errors.InvalidValueError, match="Prerelease is empty"):
        semver.SemVer(1, 0, 0, prerelease=[""])
