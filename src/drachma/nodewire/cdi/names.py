"""Names of devices as container runtimes know them: ``vendor.com/class=device``."""

from typing import NamedTuple

from drachma import errors
from drachma.values import quotation


class QualifiedName(NamedTuple):
    """A device of a class of a vendor."""

    vendor: str
    device_class: str
    device: str

    def __str__(self) -> str:
        return f"{self.vendor}/{self.device_class}={self.device}"

    @property
    def kind(self) -> str:
        return f"{self.vendor}/{self.device_class}"


def parse(text: str) -> QualifiedName:
    """The parts of a qualified name.

    Raises:
        errors.InvalidValueError: it has not all parts, or one of them is not valid.
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
    """Whether a text is a qualified name."""
    try:
        parse(text)
    except errors.InvalidValueError:
        return False
    return True


def split(text: str) -> tuple[str, str, str]:
    """Vendor, class and device of a name, valid or not; all of it is the device where it has no such parts."""
    qualifier, separator, device = text.partition("=")
    if text.startswith("/") or not separator or not qualifier or not device:
        return "", "", text
    vendor, device_class = split_kind(qualifier)
    return (vendor, device_class, device) if vendor else ("", "", text)


def split_kind(kind: str) -> tuple[str, str]:
    """Vendor and class of ``vendor.com/class``; all of it is the class where it has no such parts."""
    vendor, separator, device_class = kind.partition("/")
    return (vendor, device_class) if separator and vendor and device_class else ("", kind)


def check_vendor(name: str) -> None:
    """Refuses what cannot be the name of a vendor with an InvalidValueError."""
    _check_qualifier(name, "vendor")


def check_class(name: str) -> None:
    """Refuses what cannot be the name of a class with an InvalidValueError."""
    _check_qualifier(name, "class")


def check_device(name: str) -> None:
    """Refuses what cannot be the name of a device with an InvalidValueError."""
    if not name:
        raise errors.InvalidValueError("invalid (empty) device name")
    shown = quotation.quote(name)
    if not _is_alphanumeric(name[0]):
        raise errors.InvalidValueError(f"invalid class {shown}, should start with a letter or digit")
    if (character := _stranger(name, "_-.:")) is not None:
        raise errors.InvalidValueError(f"invalid character '{character}' in device name {shown}")
    if not _is_alphanumeric(name[-1]):
        raise errors.InvalidValueError(f"invalid name {shown}, should end with a letter or digit")


def _check_qualifier(name: str, part: str) -> None:
    shown = quotation.quote(name)
    if not name:
        raise errors.InvalidValueError(f"invalid {part}. empty name")
    if not (name[0].isascii() and name[0].isalpha()):
        raise errors.InvalidValueError(f"invalid {part}. {shown}, should start with letter")
    if (character := _stranger(name, "_-.")) is not None:
        raise errors.InvalidValueError(f"invalid {part}. invalid character '{character}' in name {shown}")
    if not _is_alphanumeric(name[-1]):
        raise errors.InvalidValueError(f"invalid {part}. {shown}, should end with a letter or digit")


def _stranger(name: str, others: str) -> str | None:
    """The first character, of those between the first and the last byte, that names do not have."""
    between = name.encode()[1:-1].decode(errors="replace")
    return next((each for each in between if not (_is_alphanumeric(each) or each in others)), None)


def _is_alphanumeric(character: str) -> bool:
    return character.isascii() and character.isalnum()
