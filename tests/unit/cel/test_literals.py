"""Values of literals, and the literals that have none."""

import pytest

from drachma import errors
from drachma.cel import ast, literals


@pytest.mark.parametrize(
    ("text", "negative", "want"),
    [
        pytest.param("0", False, 0, id="zero"),
        pytest.param("9223372036854775807", False, 2**63 - 1, id="largest"),
        pytest.param("9223372036854775808", True, -(2**63), id="smallest"),
        pytest.param("0xff", False, 255, id="hex"),
        pytest.param("0x8000000000000000", True, -(2**63), id="smallest-in-hex"),
        pytest.param("0" * 5000 + "7", False, 7, id="leading-zeros"),
    ],
)
def test_ints(text: str, negative: bool, want: int) -> None:
    assert literals.int_value(text, negative=negative) == want


@pytest.mark.parametrize("text", ["9223372036854775808", "0xffffffffffffffff", "9" * 5000])
def test_ints_out_of_range(text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match="invalid int literal"):
        literals.int_value(text, negative=False)


def test_uints() -> None:
    value = literals.uint_value("18446744073709551615u")
    assert type(value) is ast.UInt
    assert value == 2**64 - 1
    assert literals.uint_value("0x10U") == 16
    with pytest.raises(errors.InvalidValueError, match="invalid uint literal"):
        literals.uint_value("18446744073709551616u")


def test_doubles() -> None:
    assert literals.double_value("1.5e3", negative=True) == -1500.0
    with pytest.raises(errors.InvalidValueError, match="invalid double literal"):
        literals.double_value("1e400", negative=False)


@pytest.mark.parametrize(
    ("token", "want"),
    [
        pytest.param("''", "", id="empty"),
        pytest.param('""""""', "", id="empty-triple"),
        pytest.param('"it\'s"', "it's", id="other-quote"),
        pytest.param(r"'\a\b\f\n\r\t\v\\\'\"\`\?'", "\a\b\f\n\r\t\v\\'\"`?", id="simple-escapes"),
        pytest.param(r"'\x41\X42\103\u00e9\U0001F600'", "ABCé\U0001f600", id="coded-escapes"),
        pytest.param(r"'\xff\377'", "ÿÿ", id="bytes-past-ascii-are-characters"),
        pytest.param(r"r'\n\''"[:-1], "\\n\\", id="raw"),
        pytest.param("'''a\r\nb\rc'''", "a\nb\nc", id="line-ends-become-line-feeds"),
        pytest.param("'''it's'''", "it's", id="quote-in-triple"),
    ],
)
def test_strings(token: str, want: str) -> None:
    assert literals.string_value(token) == want


@pytest.mark.parametrize("escape", [r"\ud800", r"\udfff", r"\U00110000", r"\UFFFFFFFF"])
def test_escapes_that_name_no_character(escape: str) -> None:
    with pytest.raises(errors.InvalidValueError, match="invalid unicode code point"):
        literals.string_value(f"'{escape}'")


@pytest.mark.parametrize(
    ("token", "want"),
    [
        pytest.param("b'abc'", b"abc", id="ascii"),
        pytest.param("b'é'", b"\xc3\xa9", id="characters-are-utf-8"),
        pytest.param(r"b'\xff\000\377\n'", b"\xff\x00\xff\n", id="escapes-are-bytes"),
        pytest.param(r"br'\xff'", rb"\xff", id="raw"),
        pytest.param("B'''a'b'''", b"a'b", id="triple"),
    ],
)
def test_bytes(token: str, want: bytes) -> None:
    assert literals.bytes_value(token) == want


def test_bytes_have_no_character_escapes() -> None:
    with pytest.raises(errors.InvalidValueError, match="unable to unescape string"):
        literals.bytes_value(r"b'\u0041'")
