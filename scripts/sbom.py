"""Writes the bill of materials of drachma: every locked package that it runs with, as CycloneDX 1.5 in JSON.

Usage: python scripts/sbom.py [lock file]      (requirements/runtime.txt unless given)

Versions and hashes are those of the lock file. Licences are those that the installed packages state; a package that is
not installed, because it is for another system, has none.
"""

import importlib.metadata
import json
import pathlib
import re
import sys
from typing import Any

PROJECT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from scripts import check_licences  # noqa: E402

_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def build(lock_file: pathlib.Path) -> dict[str, Any]:
    """Return the bill of materials for the packages of a lock file."""
    pins = {each.name: each for each in check_licences.read_pins([lock_file])}
    licences = {each.package: each.licence for each in check_licences.find_licences(pins)}
    hashes = _read_hashes(lock_file)
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{pin.version}",
            "name": name,
            "version": pin.version,
            "purl": f"pkg:pypi/{name}@{pin.version}",
            "hashes": [{"alg": "SHA-256", "content": each} for each in hashes.get(name, ())],
            **({"licenses": [{"expression": licences[name]}]} if licences.get(name) else {}),
        }
        for name, pin in sorted(pins.items())
    ]
    own = {
        "type": "application",
        "bom-ref": "drachma",
        "name": "drachma",
        "version": importlib.metadata.version("drachma"),
        "licenses": [{"expression": "Apache-2.0"}],
    }
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "metadata": {"component": own}, "components": components}


def _read_hashes(lock_file: pathlib.Path) -> dict[str, list[str]]:
    """Return the hashes of each package: one for each of its files."""
    hashes: dict[str, list[str]] = {}
    name = ""
    for line in lock_file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith((" ", "#")):
            name = line.partition("==")[0].strip()
        hashes.setdefault(name, []).extend(_HASH.findall(line))
    return hashes


def main() -> None:
    """Print the bill of materials."""
    lock_file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else PROJECT / "requirements" / "runtime.txt"
    sys.stdout.write(json.dumps(build(lock_file), indent=2) + "\n")


if __name__ == "__main__":
    main()
