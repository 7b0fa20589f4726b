"""Writing the CDI files of a driver: whole or not at all, in the oldest version that can say them, and strict."""

import pathlib

import msgspec

from drachma.nodewire import wholefile
from drachma.nodewire.cdi import rules, spec

_encode = msgspec.json.Encoder().encode


def encode(content: spec.Spec) -> bytes:
    """The text of a spec. Its version is chosen here: runtimes refuse versions that they do not know, so the oldest
    that can say it is right for all.

    Raises:
        errors.InvalidValueError: it breaks a rule, also one that runtimes do not check.
    """
    document = msgspec.structs.replace(content, cdi_version=spec.minimum_version(content))
    rules.check(document)
    rules.check_annotations(document)
    return _encode(document)


def write(path: pathlib.Path, content: spec.Spec) -> None:
    """Puts a spec into a file, which has the old content or the new one whatever happens.

    Raises:
        errors.InvalidValueError: see :func:`encode`.
        OSError: the file cannot be written.
    """
    wholefile.write(path, encode(content))


def remove(path: pathlib.Path) -> None:
    """Removes a file, if it is there."""
    path.unlink(missing_ok=True)


def file_name(kind: str, *, transient: str = "") -> str:
    """The name that the interface recommends for the file of a kind; ``transient`` is what it lives and dies with."""
    stem = kind.replace("/", "-", 1)
    return f"{stem}_{transient.replace('/', '_')}.json" if transient else f"{stem}.json"
