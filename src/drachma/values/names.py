"""Forms of names in Kubernetes, with upstream's messages for names that do not have them.

Called by validation, by the selectors here, and by CEL's named formats. Each check takes the text and returns its
problems in upstream's order; an empty tuple means valid. Lengths count UTF-8 bytes, as upstream's do.

Upstream words the length rule of DNS names in two ways, depending on whether validation is written by hand
("characters") or declared on the type ("bytes"); ``unit`` chooses. Whether a name is *required*, and the "too long"
errors of fields with a shorter limit than their format, are the caller's business.
"""

import functools
import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from drachma.values import quotation

Problems: TypeAlias = tuple[str, ...]
Unit: TypeAlias = Literal["characters", "bytes"]

LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253
CHARACTER_BYTES: Final = 4
"""How many bytes a character has at most."""

_REMEMBERED: Final = 4096

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY_NAME})?"
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"


def _remembered(matches: Callable[[str], object]) -> Callable[[str], bool]:
    """Return a cached function for texts that are not too long, because most objects have the same few names."""
    return functools.lru_cache(maxsize=_REMEMBERED)(lambda text: matches(text) is not None)


_is_label: Final = re.compile(_LABEL).fullmatch
_is_subdomain: Final = re.compile(_SUBDOMAIN).fullmatch
# Without regard to case, Go's patterns also take the long s and the Kelvin sign for letters.
_is_caseless_subdomain: Final = re.compile(
    _SUBDOMAIN.replace("a-z", "A-Za-z\N{LATIN SMALL LETTER LONG S}\N{KELVIN SIGN}")
).fullmatch
_is_label_1035: Final = re.compile(_LABEL_1035).fullmatch
_is_key_name: Final = re.compile(_KEY_NAME).fullmatch
_is_value: Final = re.compile(_VALUE).fullmatch
_is_c_identifier: Final = re.compile(_C_IDENTIFIER).fullmatch
_is_uuid: Final = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
_is_undashed_uuid: Final = re.compile("[0-9A-Fa-f]{32}").fullmatch

_is_good_label: Final = _remembered(_is_label)
_is_good_subdomain: Final = _remembered(_is_subdomain)
_is_good_caseless_subdomain: Final = _remembered(_is_caseless_subdomain)
_is_good_value: Final = _remembered(_is_value)

_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_CASELESS_SUBDOMAIN_RULE: Final = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_WILDCARD_RULE: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_LABEL_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_KEY_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_C_IDENTIFIER_RULE: Final = (
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'"
)
_UID_RULE: Final = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
    "with lowercase hexadecimal characters"
)
_REQUESTS_PREFIX: Final = "requests."
_NATIVE_DOMAIN: Final = "kubernetes.io/"
_HUGE_PAGES_PREFIX: Final = "hugepages-"


def byte_length(text: str) -> int:
    """The length upstream measures."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_longer(text: str, limit: int) -> bool:
    """Return True if a text has more bytes than a limit; short texts are decided by their characters."""
    return len(text) * CHARACTER_BYTES > limit and byte_length(text) > limit


def dns1123_label(text: str, *, unit: Unit = "characters") -> Problems:
    """Problems of a short name: one DNS label, such as a device or request name."""
    if len(text) <= LABEL_LENGTH and _is_good_label(text):
        return ()
    problems = _too_long(text, LABEL_LENGTH, unit=unit)
    if _is_label(text):
        return problems
    if _is_subdomain(text):
        return (*problems, "must not contain dots")
    return (*problems, _pattern_problem(_LABEL_RULE, _LABEL, examples=("my-name", "123-abc")))


def dns1123_subdomain(text: str, *, unit: Unit = "characters") -> Problems:
    """Problems of a long name: DNS labels with dots between them, such as an object's name."""
    if len(text) <= SUBDOMAIN_LENGTH and _is_good_subdomain(text):
        return ()
    problems = _too_long(text, SUBDOMAIN_LENGTH, unit=unit)
    if _is_subdomain(text):
        return problems
    return (*problems, _pattern_problem(_SUBDOMAIN_RULE, _SUBDOMAIN, examples=("example.com",)))


def dns1123_subdomain_caseless(text: str, *, unit: Unit = "bytes") -> Problems:
    """Problems of a long name that may have capital letters, as declared for driver names."""
    # Here letters may be longer than a byte.
    if not is_longer(text, SUBDOMAIN_LENGTH) and _is_good_caseless_subdomain(text):
        return ()
    problems = _too_long(text, SUBDOMAIN_LENGTH, unit=unit)
    if _is_caseless_subdomain(text):
        return problems
    return (*problems, _pattern_problem(_CASELESS_SUBDOMAIN_RULE, _SUBDOMAIN, examples=("Example.com",)))


def wildcard_subdomain(text: str) -> Problems:
    """Problems of a long name for all hosts of a domain: ``*.example.com``."""
    problems = _too_long(text, SUBDOMAIN_LENGTH, unit="characters")
    if text.startswith("*.") and _is_subdomain(text[2:]):
        return problems
    return (*problems, _pattern_problem(_WILDCARD_RULE, rf"\*\.{_SUBDOMAIN}", examples=("*.example.com",)))


def driver_name(text: str) -> Problems:
    """Problems of a driver name as checked by hand: a long name once it is in lower case."""
    if len(text) <= SUBDOMAIN_LENGTH and _is_good_subdomain(text):
        return ()
    # Go lowers the capital I with dot to one letter, Python to two characters.
    return dns1123_subdomain(text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i").lower())


def dns1035_label(text: str) -> Problems:
    """Problems of a DNS label of the older kind, which starts with a letter."""
    problems = _too_long(text, LABEL_LENGTH, unit="characters")
    if _is_label_1035(text):
        return problems
    return (*problems, _pattern_problem(_LABEL_1035_RULE, _LABEL_1035, examples=("my-name", "abc-123")))


def qualified_name(text: str) -> Problems:
    """Problems of a qualified name, which is what a label key is: ``[prefix/]name``."""
    # The same few keys are on most objects; texts that are too long to be good are not kept.
    return _remembered_name(text) if len(text) <= SUBDOMAIN_LENGTH + LABEL_LENGTH else _qualified_name(text)


def _qualified_name(text: str) -> Problems:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        suffix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_key_name_problem()} {suffix}",)
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in dns1123_subdomain(prefix, unit="bytes")]
    if not name:
        problems.append("name part must be non-empty")
    else:
        problems += [f"name part {problem}" for problem in _too_long(name, LABEL_LENGTH, unit="bytes")]
    if not _is_key_name(name):
        problems.append(f"name part {_key_name_problem()}")
    return tuple(problems)


_remembered_name = functools.lru_cache(maxsize=_REMEMBERED)(_qualified_name)

label_key = qualified_name


def label_value(text: str) -> Problems:
    """Problems of a label's value, which may be empty."""
    if len(text) <= LABEL_LENGTH and _is_good_value(text):
        return ()
    problems = _too_long(text, LABEL_LENGTH, unit="bytes")
    if _is_value(text):
        return problems
    return (*problems, _pattern_problem(_VALUE_RULE, _VALUE, examples=("MyValue", "my_value", "12345")))


def c_identifier(text: str) -> Problems:
    """Problems of an identifier, such as the last part of an attribute's name."""
    if _is_c_identifier(text):
        return ()
    return (_pattern_problem(_C_IDENTIFIER_RULE, _C_IDENTIFIER, examples=("my_name", "MY_NAME", "MyName")),)


def extended_resource_name(text: str) -> Problems:
    """Problems of an extended resource's name: with a domain, not a native one, and fit for a quota."""
    problems: list[str] = []
    if "/" not in text:
        problems.append("a name must be a domain-prefixed path, such as 'example.com/my-prop'")
    elif _NATIVE_DOMAIN in text:
        problems.append(f"must not have {quotation.quote(_NATIVE_DOMAIN)} domain")
    if text.startswith(_REQUESTS_PREFIX):
        problems.append(f"must not have {quotation.quote(_REQUESTS_PREFIX)} prefix")
    problems += qualified_name(_REQUESTS_PREFIX + text)
    return tuple(problems)


def is_native_resource(text: str) -> bool:
    """Return True for resources of Kubernetes: without a domain, or with kubernetes.io."""
    return "/" not in text or _NATIVE_DOMAIN in text


def is_huge_page_resource(text: str) -> bool:
    """Return True for huge pages of some size, such as ``hugepages-2Mi``."""
    return text.startswith(_HUGE_PAGES_PREFIX)


def resource_pool_name(text: str) -> Problems:
    """Problems of a pool's name, as declared: long names with slashes between them.

    Its own length limit is not among them, since upstream reports that as "too long".
    """
    problems: list[str] = []
    for index, segment in enumerate(text.split("/")):
        segment_problems = dns1123_subdomain(segment, unit="bytes") if segment else ("must not be empty",)
        problems += [f"segment {index}: {problem}" for problem in segment_problems]
    return tuple(problems)


def path_segment_name(text: str) -> Problems:
    """Problems of a name that becomes one segment of a URL path."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    if "/" not in text and "%" not in text:
        return ()
    return tuple(f"may not contain '{character}'" for character in "/%" if character in text)


def uuid(text: str) -> Problems:
    """Problems of a UUID, which must be in lower case and have its dashes."""
    return () if _is_uuid(text) else ("must be a lowercase UUID in 8-4-4-4-12 format",)


def uid(text: str) -> Problems:
    """Problems of a UUID as checked by hand, where other spellings of one get their own message."""
    problem = _uuid_problem(text)
    if problem:
        return (f"error validating uid: {problem}",)
    return () if _is_uuid(text) else (_UID_RULE,)


def mask_trailing_dash(text: str) -> str:
    """Return the text that upstream checks instead of a ``generateName`` that ends in a dash."""
    return text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text


def _uuid_problem(text: str) -> str:
    """Why a text is no UUID in any of its spellings: plain, without dashes, in braces, or as a URN."""
    length = byte_length(text)
    if length == 45:
        if text[:9].lower() != "urn:uuid:":
            return f"invalid urn prefix: {quotation.quote(text[:9])}"
        text = text[9:]
    elif length == 38:
        if text[0] != "{" or text[-1] != "}":
            return "invalid bracketed UUID format"
        text = text[1:-1]
    elif length == 32:
        return "" if _is_undashed_uuid(text) else "invalid UUID format"
    elif length != 36:
        return f"invalid UUID length: {length}"
    return "" if _is_uuid(text.lower()) and text.isascii() else "invalid UUID format"


def _too_long(text: str, limit: int, *, unit: Unit) -> Problems:
    return (f"must be no more than {limit} {unit}",) if is_longer(text, limit) else ()


def _key_name_problem() -> str:
    return _pattern_problem(_KEY_NAME_RULE, _KEY_NAME, examples=("MyName", "my.name", "123-abc"))


def _pattern_problem(rule: str, pattern: str, *, examples: tuple[str, ...]) -> str:
    example_text = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {example_text}regex used for validation is '{pattern}')"
