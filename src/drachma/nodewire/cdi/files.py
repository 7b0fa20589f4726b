"""CDI files of a driver: written atomically, in the oldest version that they allow, and validated strictly."""

import pathlib

import msgspec

from drachma.nodewire import wholefile
from drachma.nodewire.cdi import rules, spec

_encode = msgspec.json.Encoder().encode


def encode(content: spec.Spec) -> bytes:
    """Return the text of a spec, in the oldest version that it allows, because runtimes refuse newer versions.

    Raises:
        errors.InvalidValueError: the spec breaks a rule, maybe one that runtimes do not check.
    """
    document = msgspec.structs.replace(content, cdi_version=spec.minimum_version(content))
    rules.check(document)
    rules.check_annotations(document)
    return _encode(document)


def write(path: pathlib.Path, content: spec.Spec) -> None:
    """Write a spec to a file atomically.

    Raises:
        errors.InvalidValueError: see :func:`encode`.
        OSError: the file cannot be written.
    """
    wholefile.write(path, encode(content))


def remove(path: pathlib.Path) -> None:
    """Remove a file, if it exists."""
    path.unlink(missing_ok=True)


def file_name(kind: str, *, transient: str = "") -> str:
    """Return the recommended name for the file of a kind. ``transient`` names the object that owns a temporary file."""
    stem = kind.replace("/", "-", 1)
    return f"{stem}_{transient.replace('/', '_')}.json" if transient else f"{stem}.json"
