"""Qualified names of CDI devices: ``vendor.com/class=device``."""

from typing import NamedTuple

from drachma import errors
from drachma.values import quotation


class QualifiedName(NamedTuple):
    """Vendor, class and name of a device."""

    vendor: str
    device_class: str
    device: str

    def __str__(self) -> str:
        return f"{self.vendor}/{self.device_class}={self.device}"

    @property
    def kind(self) -> str:
        return f"{self.vendor}/{self.device_class}"


def parse(text: str) -> QualifiedName:
    """Return the parts of a qualified name.

    Raises:
        errors.InvalidValueError: a part is missing or invalid.
    """
    vendor, device_class, device = split(text)
    for part, title in ((vendor, "vendor"), (device_class, "class"), (device, "device name")):
        if not part:
            raise errors.InvalidValueError(f"unqualified device {quotation.quote(text)}, missing {title}")
    try:
        check_vendor(vendor)
        check_class(device_class)
        check_device(device)
    except errors.InvalidValueError as error:
        raise errors.InvalidValueError(f"invalid device {quotation.quote(text)}: {error}") from None
    return QualifiedName(vendor, device_class, device)


def is_qualified(text: str) -> bool:
    """Return True if a text is a qualified name."""
    try:
        parse(text)
    except errors.InvalidValueError:
        return False
    return True


def split(text: str) -> tuple[str, str, str]:
    """Return vendor, class and device of a name, valid or not. A name without these parts is the device."""
    qualifier, separator, device = text.partition("=")
    if text.startswith("/") or not separator or not qualifier or not device:
        return "", "", text
    vendor, device_class = split_kind(qualifier)
    return (vendor, device_class, device) if vendor else ("", "", text)


def split_kind(kind: str) -> tuple[str, str]:
    """Return vendor and class of ``vendor.com/class``. A kind without these parts is the class."""
    vendor, separator, device_class = kind.partition("/")
    return (vendor, device_class) if separator and vendor and device_class else ("", kind)


def check_vendor(name: str) -> None:
    """Raise InvalidValueError if a text cannot be the name of a vendor."""
    _check_qualifier(name, "vendor")


def check_class(name: str) -> None:
    """Raise InvalidValueError if a text cannot be the name of a class."""
    _check_qualifier(name, "class")


def check_device(name: str) -> None:
    """Raise InvalidValueError if a text cannot be the name of a device."""
    if not name:
        raise errors.InvalidValueError("invalid (empty) device name")
    quoted = quotation.quote(name)
    if not _is_alphanumeric(name[0]):
        raise errors.InvalidValueError(f"invalid class {quoted}, should start with a letter or digit")
    if (character := _invalid_character(name, "_-.:")) is not None:
        raise errors.InvalidValueError(f"invalid character '{character}' in device name {quoted}")
    if not _is_alphanumeric(name[-1]):
        raise errors.InvalidValueError(f"invalid name {quoted}, should end with a letter or digit")


def _check_qualifier(name: str, part: str) -> None:
    quoted = quotation.quote(name)
    if not name:
        raise errors.InvalidValueError(f"invalid {part}. empty name")
    if not (name[0].isascii() and name[0].isalpha()):
        raise errors.InvalidValueError(f"invalid {part}. {quoted}, should start with letter")
    if (character := _invalid_character(name, "_-.")) is not None:
        raise errors.InvalidValueError(f"invalid {part}. invalid character '{character}' in name {quoted}")
    if not _is_alphanumeric(name[-1]):
        raise errors.InvalidValueError(f"invalid {part}. {quoted}, should end with a letter or digit")


def _invalid_character(name: str, punctuation: str) -> str | None:
    """Return the first invalid character between the first and the last byte, or None."""
    between = name.encode()[1:-1].decode(errors="replace")
    return next((each for each in between if not (_is_alphanumeric(each) or each in punctuation)), None)


def _is_alphanumeric(character: str) -> bool:
    return character.isascii() and character.isalnum()
