"""Checks the licences of locked dependencies that are installed here.

Usage: python scripts/check_licences.py [lock file ...]      (requirements/*.txt unless given)

Prints each package with its licence. Ends with 1 if a licence is not in the list, or if a package does not state one.
"""

import importlib.metadata
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

PROJECT = pathlib.Path(__file__).resolve().parent.parent

ALLOWED = frozenset(
    {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "Unlicense"}
)
"""Licences, by their SPDX identifiers, that let drachma use a package without obligations for its own source."""

_NAMES = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Identifiers of licences, by the names that older packages have for them."""

_CLASSIFIER = "License :: "
_PIN = re.compile(r"([a-z0-9][a-z0-9.-]*)==([^ ;\\]+)(?: ; ([^\\]+))?")


class Pin(NamedTuple):
    """Locked package. One with a marker is for some Pythons or systems only."""

    name: str
    version: str
    marker: str


class Finding(NamedTuple):
    """Licence of a package; it is empty if the package states none."""

    package: str
    licence: str

    @property
    def is_allowed(self) -> bool:
        """True if every part of the expression, or one of its alternatives, is in the list."""
        alternatives = self.licence.replace("(", "").replace(")", "").split(" OR ")
        return any(all(part in ALLOWED for part in each.split(" AND ")) for each in alternatives)


def read_pins(files: Iterable[pathlib.Path]) -> Iterator[Pin]:
    """Yield the packages of lock files."""
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            match = _PIN.match(line)
            if match is not None:
                yield Pin(match[1], match[2], (match[3] or "").strip())


def find_licences(names: Iterable[str]) -> Iterator[Finding]:
    """Yield the licences of packages that are installed."""
    for name in sorted(set(names)):
        try:
            metadata = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        yield Finding(name, _licence(metadata))


def _licence(metadata: importlib.metadata.PackageMetadata) -> str:
    expression = metadata.json.get("license_expression")
    if isinstance(expression, str):
        return expression
    stated = str(metadata.json.get("license") or "").strip()
    licence = _NAMES.get(stated, stated)
    if licence in ALLOWED:
        return licence
    classifiers = [text for text in metadata.json.get("classifier") or () if text.startswith(_CLASSIFIER)]
    titles = [text.rpartition(" :: ")[2] for text in classifiers]
    return " AND ".join(_NAMES.get(title, title) for title in titles) or stated.partition("\n")[0]


def main(arguments: list[str]) -> int:
    files = list(map(pathlib.Path, arguments)) or sorted((PROJECT / "requirements").glob("*.txt"))
    findings = list(find_licences(pin.name for pin in read_pins(files)))
    for finding in findings:
        verdict = "" if finding.is_allowed else "   NOT ALLOWED"
        print(f"{finding.package:24} {finding.licence or 'states no licence'}{verdict}")
    return 0 if all(finding.is_allowed for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
