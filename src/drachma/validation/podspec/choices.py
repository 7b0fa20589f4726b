"""Small rules that several parts of a pod share: enumerations, numbers in a range, paths, addresses, DNS names.

All take the value and where it is, and return what is wrong, mostly nothing.
"""

import re
from collections.abc import Sequence
from typing import Final

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Found
from drachma.validation.path import Path
from drachma.values import names

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
POSITIVE: Final = "must be greater than zero"
FILE_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"

_LAST_PORT: Final = 65535
_LAST_ID: Final = 2**31 - 1
_PORT_NAME_LENGTH: Final = 15
_PORT_CHARACTERS: Final = re.compile(r"[-a-z0-9]+")
_LETTER: Final = re.compile(r"[a-z]")
_LEADING_ZERO: Final = re.compile(r"(?:^|[.:])0[0-9]")
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")


def one_of(value: str, at: Path, supported: Sequence[str]) -> Found:
    """One of a few words, which must be there; ``supported`` is in the order that messages list it in."""
    if value in supported and value:
        return ()
    return [fielderror.not_supported(at, rendering.named(value), supported) if value else fielderror.required(at)]


def in_range(value: int, at: Path, *, least: int, most: int) -> Found:
    """A number between two others."""
    if least <= value <= most:
        return ()
    return [fielderror.invalid(at, value, f"must be between {least} and {most}, inclusive")]


def not_negative(value: int, at: Path) -> Found:
    """Zero or more."""
    return [fielderror.invalid(at, value, NOT_NEGATIVE)] if value < 0 else ()


def port(value: int, at: Path) -> Found:
    """The number of a port."""
    return in_range(value, at, least=1, most=_LAST_PORT)


def user_or_group(value: int, at: Path) -> Found:
    """The number of a user or a group."""
    return in_range(value, at, least=0, most=_LAST_ID)


def file_mode(value: int | None, at: Path) -> Found:
    """The permissions of a file."""
    if value is None or 0 <= value <= 0o777:
        return ()
    return [fielderror.invalid(at, value, FILE_MODE)]


def port_name_problems(name: str) -> list[str]:
    """What keeps a text from being the name of a port."""
    problems = []
    if len(name) > _PORT_NAME_LENGTH:
        problems.append(f"must be no more than {_PORT_NAME_LENGTH} characters")
    if not _PORT_CHARACTERS.fullmatch(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER.search(name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name and (name[0] == "-" or name[-1] == "-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_or_name(value: int | str, at: Path) -> Found:
    """A port by its number, or by the name that it has in its container."""
    if isinstance(value, str):
        return fielderror.problems(at, value, port_name_problems(value))
    return port(value, at)


def label(name: str, at: Path) -> Found:
    """A DNS label that must be there."""
    return formats.short_name(name, at) if name else [fielderror.required(at)]


def qualified_name(name: str, at: Path) -> Found:
    """A name that may have a domain before it."""
    return fielderror.problems(at, name, names.qualified_name(name))


def without_steps_back(path: str, at: Path) -> Found:
    """A path that does not go up."""
    return [fielderror.invalid(at, path, "must not contain '..'")] if ".." in path.split("/") else ()


def descending(path: str, at: Path) -> Found:
    """A relative path that does not go up."""
    found = list(without_steps_back(path, at))
    return [fielderror.invalid(at, path, "must be a relative path"), *found] if path.startswith("/") else found


def not_reserved(path: str, at: Path) -> Found:
    """A relative path that does not begin as the names do that kubelet keeps for itself."""
    found = list(descending(path, at))
    if path.startswith("..") and not path.startswith("../"):
        found.append(fielderror.invalid(at, path, "must not start with '..'"))
    return found


def address(text: str, at: Path) -> Found:
    """An IP address as one would write it today."""
    parsed = formats.lenient_address(text)
    if parsed is None:
        return [fielderror.invalid(at, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    if getattr(parsed, "ipv4_mapped", None) is not None:
        return [fielderror.invalid(at, text, "must not be an IPv4-mapped IPv6 address")]
    if _LEADING_ZERO.search(text) and "." in text:
        return [fielderror.invalid(at, text, "must not have leading 0s")]
    return ()


def config_key_problems(key: str) -> list[str]:
    """What keeps a key of a config map or secret from being a file name."""
    problems = []
    if len(key) > names.SUBDOMAIN_LENGTH:
        problems.append(f"must be no more than {names.SUBDOMAIN_LENGTH} characters")
    if not _CONFIG_KEY.fullmatch(key):
        problems.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key == ".":
        problems.append("must not be '.'")
    elif key.startswith(".."):
        problems.append("must not be '..'" if key == ".." else "must not start with '..'")
    return problems
