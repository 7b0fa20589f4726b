"""Prints each first step of the README with its time, and the time until a pod has a GPU and until it is explained."""

import pathlib
import sys
import tempfile

from tests.newcomer import steps


def main() -> None:
    """Run the steps in a clean folder."""
    total = 0.0
    with tempfile.TemporaryDirectory(prefix="drachma-newcomer-") as home:
        for step in steps.run(pathlib.Path(home)):
            total += step.seconds
            sys.stdout.write(f"{step.seconds:6.1f} s  {step.command}\n")
    sys.stdout.write(f"{total:6.1f} s  from nothing to an explained pod, and back\n")


if __name__ == "__main__":
    main()
