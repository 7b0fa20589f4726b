"""Writing the CDI files of a driver: whole or not at all, in the oldest version that can say them, and strict."""

import contextlib
import os
import pathlib
import tempfile

import msgspec

from drachma.nodewire.cdi import rules, spec

_encode = msgspec.json.Encoder().encode


def write(path: pathlib.Path, content: spec.Spec) -> None:
    """Puts a spec into a file, which has the old content or the new one whatever happens. Its version is chosen here.

    Runtimes refuse versions that they do not know, so the oldest that can say it is right for all.

    Raises:
        errors.InvalidValueError: it breaks a rule, also one that runtimes do not check.
        OSError: the file cannot be written.
    """
    document = msgspec.structs.replace(content, cdi_version=spec.minimum_version(content))
    rules.check(document)
    rules.check_annotations(document)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Runtimes read all that ends in .json or .yaml: this does not.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    temporary = pathlib.Path(name)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(_encode(document))
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_directory(path.parent)


def remove(path: pathlib.Path) -> None:
    """Removes a file, if it is there."""
    path.unlink(missing_ok=True)


def file_name(kind: str, *, transient: str = "") -> str:
    """The name that the interface recommends for the file of a kind; ``transient`` is what it lives and dies with."""
    stem = kind.replace("/", "-", 1)
    return f"{stem}_{transient.replace('/', '_')}.json" if transient else f"{stem}.json"


def _sync_directory(directory: pathlib.Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
