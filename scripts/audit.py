"""Looks locked dependencies up in the database of known vulnerabilities.

Usage: python scripts/audit.py PIP_AUDIT LOCK_FILE ...

Ends with 0 if no package has a known vulnerability, with 1 if one has, and with 2 if packages could not be looked up:
pip-audit itself ends with 0 then, as if they had been.
"""

import json
import subprocess
import sys


def main(arguments: list[str]) -> int:
    program, *files = arguments
    options = [option for file in files for option in ("--requirement", file)]
    command = [program, "--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        lines = done.stderr.strip().splitlines() or [f"{program} ended with {done.returncode}"]
        print(f"audit: nothing was looked up, the database cannot be reached: {lines[-1]}", file=sys.stderr)
        return 2
    vulnerable = [package for package in packages if package.get("vulns")]
    for package in vulnerable:
        for vulnerability in package["vulns"]:
            fixed = ", ".join(vulnerability.get("fix_versions") or ()) or "no version"
            print(f"{package['name']} {package['version']}: {vulnerability['id']}, fixed in {fixed}")
    skipped = [package for package in packages if "skip_reason" in package]
    looked_up = len(packages) - len(skipped)
    print(f"audit: {looked_up} of {len(packages)} packages looked up, {len(vulnerable)} with known vulnerabilities")
    if skipped:
        print(
            f"audit: {len(skipped)} packages could not be looked up, the database does not have them or cannot be "
            f"reached; the first is {skipped[0]['name']}: {skipped[0]['skip_reason']}",
            file=sys.stderr,
        )
    return 1 if vulnerable else 2 if skipped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
