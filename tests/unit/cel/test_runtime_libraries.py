"""The libraries, through expressions: one line a behaviour that is easy to get wrong."""

from typing import Any

import pytest

from drachma.cel.runtime import faults, regex, urls
from tests.unit.cel import running

BAD_IP = 'IP Address "1.01" parse error during conversion from string: ParseAddr("1.01"): '
LEADING_ZERO = "IPv4 field has octet with leading zero"


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        # strings
        ("'héllo'.charAt(1)", "é"),
        ("'abc'.charAt(3)", ""),
        ("'abc'.indexOf('', 5)", 3),
        ("'hello'.lastIndexOf('l', 2)", 2),
        ("'aaa'.replace('', '-', 2)", "-a-aa"),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("'a,b'.split(',', 0)", []),
        ("'ÀÉa'.lowerAscii()", "ÀÉa"),
        ("'\\u0085 a\\u2003'.trim()", "a"),
        ("strings.quote('a\"\\n')", '"a\\"\\n"'),
        ("['a', 'b'].join('-')", "a-b"),
        # format
        ("'%d %s %x %X %o %b'.format([1, 'a', 255, 'hé', 8, true])", "1 a ff 68C3A9 10 1"),
        ("'%f %.1f'.format([1234567.891, 0.25])", "1,234,567.891000 0.2"),
        ("'%e'.format([1234.5])", "1.234500×10⁰³"),
        ("'%.14e|'.format([1.0])", " 1.000000×10⁰⁰|"),
        ("'%s'.format([[1, 2.5, 'a', b'b', null]])", '[1, 2.500000, "a", b"b", null]'),
        ("'%s'.format([{'k': duration('1h')}])", '{"k":duration("3600s")}'),
        ("'100%%'.format([])", "100%"),
        # lists
        ("[3, 1, 2].sort()", [1, 2, 3]),
        ("[3, 1, 2].sortBy(x, -x)", [3, 2, 1]),
        ("[[1, [2]], [3]].flatten()", [1, [2], 3]),
        ("[[1, [2]], [3]].flatten(2)", [1, 2, 3]),
        ("[1, 1.0, 2].distinct()", [1, 2]),
        ("lists.range(3)", [0, 1, 2]),
        ("[1, 2, 3].slice(1, 3)", [2, 3]),
        ("[1, 2, 3].sum() + [1, 2].max() + [1, 2].min()", 9),
        ("[1, 2, 1].lastIndexOf(1)", 2),
        ("[1, 2, 3].isSorted()", True),
        ("dyn(1).includes(1)", True),
        ("sets.equivalent([1, 1], dyn([1.0]))", True),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        # regular expressions
        ("'aab'.matches('^a+b$')", True),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("'aaa'.findAll('a*')", ["aaa"]),
        ("'abc'.findAll('x*')", ["", "", "", ""]),
        ("'a1b22'.findAll('[0-9]+', 1)", ["1"]),
        ("'ABC'.find('\\\\p{Lu}+')", "ABC"),
        ("'ABC'.find('\\\\p{uppercase letter}+')", "ABC"),
        # quantities: Go's negation of the least integer is itself
        ("quantity('3').sub(-9223372036854775808).isLessThan(quantity('0'))", True),
        ("quantity('500m').sub(-9223372036854775808).isLessThan(quantity('0'))", False),
        # addresses
        ("string(ip('2001:DB8::1'))", "2001:db8::1"),
        ("ip('10.0.0.1').family()", 4),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
        ("cidr('10.0.0.0/8').containsCIDR('10.0.0.0/7')", False),
        ("string(cidr('10.1.2.3/8').masked())", "10.0.0.0/8"),
        ("ip('169.254.1.1').isLinkLocalUnicast() && ip('8.8.8.8').isGlobalUnicast()", True),
        # URLs
        ("url('https://u:p@[::1]:80/a%20b?x=1&x=2').getHostname()", "::1"),
        ("url('https://a.b:80/c d').getEscapedPath()", "/c%20d"),
        ("url('https://a.b?x=1&x=2;y&z=%41').getQuery()", {"x": ["1"], "z": ["A"]}),
        ("isURL('nope') || isURL('http://a:b:c/')", False),
        # quantities and versions
        ("quantity('1.5Gi').compareTo(quantity('1536Mi'))", 0),
        ("quantity('1').add(1) == quantity('2')", True),
        ("quantity('1Pi').isInteger()", False),
        ("sign(quantity('-1'))", -1),
        ("semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", True),
        ("semver('v1.2', true).minor()", 2),
        # times
        ("timestamp('2020-02-29T00:00:00Z').getDayOfYear()", 59),
        ("timestamp('2020-01-01T00:00:00Z').getHours('-03:30')", 20),
        ("timestamp('2020-07-01T00:00:00Z').getHours('Europe/Berlin')", 2),
        ("timestamp('9999-12-31T23:59:59Z').getDayOfWeek('Asia/Kolkata')", 6),
        ("timestamp('0001-01-01T00:00:00Z').getFullYear('-01:00')", 0),
        ("string(timestamp('2020-01-01T00:00:00.50+02:00'))", "2020-01-01T00:00:00.5+02:00"),
        ("duration('1h1.5m').getSeconds()", 3690),
        ("string(duration('-1.5s'))", "-1.5s"),
        # formats
        ("format.dns1123Label().validate('a.b').value()", ["must not contain dots"]),
        ("format.named('uuid').value().validate('550e8400-e29b-41d4-a716-446655440000').hasValue()", False),
        ("format.datetime().validate('2020-01-01T25:00:00Z').hasValue()", True),
        # optionals
        ("optional.of(1).optMap(x, x + 1).orValue(0)", 2),
        ("{'a': {'b': 1}}.?a.b.orValue(0)", 1),
        ("[1, 2][?5].or([1, 2][?1]).value()", 2),
        ("[?optional.none(), 1]", [1]),
        ("optional.ofNonZeroValue('').hasValue()", False),
        # conversions
        ("int('+5') + int(' 5'.trim())", 10),
        ("double('1_000') + double('0x1p4')", 1016.0),
        ("string(1e6) + string(3u) + string(b'x')", "1e+063x"),
        ("int(timestamp('1970-01-01T00:00:10.9Z'))", 10),
        ("type(1u) == uint && type(type(1)) == type", True),
    ],
)  # fmt: skip
def test_values(expression: str, want: Any) -> None:
    assert running.value(expression) == want


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("'abc'.substring(9)", "index out of range: 9"),
        (
            "'%d'.format(dyn(['a']))",
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ("'%q'.format(dyn([1]))", 'could not parse formatting clause: unrecognized formatting clause "q"'),
        ("'%d'.format(dyn([]))", "index 0 out of range"),
        ("dyn(['a', 1]).join()", "join: invalid input: 1"),
        ("[].max()", "max called on empty list"),
        ("[1].slice(0, 2)", "cannot slice(0, 2), list is length 1"),
        ("dyn([1, 'a']).sort()", "list elements must have the same type"),
        ("lists.range(-1)", "lists.range: size must be non-negative, got -1"),
        ("dyn(1).flatten()", "no such overload: int.flatten()"),
        ("['a', 'a'].transformMapEntry(i, v, {v: i})", "insert failed: key a already exists"),
        ("'a'.matches('[' + '')", "error parsing regexp: missing closing ]: `[`"),
        ("'a'.find('(' + '')", "Illegal regex: error parsing regexp: missing closing ): `(`"),
        ("ip('1.01')", BAD_IP + LEADING_ZERO),
        ("ip('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        ("ip('fe80::1%eth0')", 'IP address "fe80::1%eth0" with zone value is not allowed'),
        ("cidr('10.0.0.0/8').containsIP('x')", "no such overload"),
        ("url('nope')", 'URL parse error during conversion from string: parse "nope": invalid URI for request'),
        (
            "quantity('x')",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("quantity('1') == quantity('0').add(1)", "no such overload"),
        ("quantity('1.5').asInteger()", "cannot convert value to integer"),
        ("semver('1.2')", "No Major.Minor.Patch elements found"),
        ("timestamp('2020-01-01T00:00:00Z').getHours('Nowhere')", "unknown time zone Nowhere"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"),
        ("duration('2562047h') + duration('2562047h')", "integer overflow"),
        ("int('x' + '')", "type conversion error from 'string' to 'int'"),
        ("uint(-1 + 0)", "unsigned integer overflow"),
        ("int(1e30 + 0.0)", "integer overflow"),
        ("string(b'\\xff' + b'')", "invalid UTF-8 in bytes, cannot convert to string"),
        ("dyn(1).getHours()", "no such overload: getHours(int)"),
        ("dyn(1).name('x')", "no such overload: name(int, string)"),
    ],
)  # fmt: skip
def test_errors(expression: str, message: str) -> None:
    with pytest.raises(faults.Fault) as caught:
        running.value(expression)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("[\\pp", "missing closing ]: `[\\pp`"),
        ("\\C", "invalid escape sequence: `\\C`"),
    ],
)
def test_pattern_errors_are_gos(pattern: str, message: str) -> None:
    with pytest.raises(regex.PatternError) as caught:
        regex.compile_pattern(pattern)
    assert str(caught.value) == f"error parsing regexp: {message}"


def test_urls_print_as_they_were_written() -> None:
    for text in ("https://u:p@a.b:80/c%2Fd?e=f#g", "http:///x", "mailto:a@b", "/a/b?c", "https://a/%C3%A9"):
        assert str(urls.parse(text)) == text
