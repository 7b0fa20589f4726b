"""Files of a new driver: the driver with two example devices, and a test that runs a pod with one of them."""

from __future__ import annotations

import importlib.resources
import keyword
import pathlib
import re
import string
from typing import Final

from drachma import errors
from drachma.values import names

_FILES: Final = {"{module}.py": "driver.py.txt", "test_{module}.py": "test_driver.py.txt"}
_LONGEST_NAME: Final = 63


def write(driver: str, folder: pathlib.Path | None) -> list[pathlib.Path]:
    """Write the files of a driver into a folder, and return their paths, the driver first.

    Raises:
        errors.InvalidValueError: the name is not one of a driver, or a file exists or cannot be written.
    """
    problems = names.dns1123_subdomain(driver)
    if problems or len(driver) > _LONGEST_NAME:
        problem = problems[0] if problems else f"must have at most {_LONGEST_NAME} characters"
        raise errors.InvalidValueError(f"driver {driver!r}: {problem}")
    first = re.sub(r"[^a-z0-9]+", "_", driver.partition(".")[0]).strip("_")
    is_taken = keyword.iskeyword(first) or first == "drachma"
    module = f"driver_{first}" if first[:1].isdigit() or is_taken else first
    words = {"driver": driver, "module": module, "class": "".join(part.title() for part in module.split("_"))}
    root = folder or pathlib.Path(driver.partition(".")[0])
    templates = importlib.resources.files("drachma.cli").joinpath("driverfiles")
    contents = {
        root / pattern.format(module=module): string.Template(
            templates.joinpath(template).read_text(encoding="utf-8")
        ).substitute(words)
        for pattern, template in _FILES.items()
    }
    for path in contents:
        if path.exists():
            raise errors.InvalidValueError(f"{path}: exists already")
    try:
        root.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise errors.InvalidValueError(f"{root}: cannot be written: {error.strerror or error}") from error
    return list(contents)
