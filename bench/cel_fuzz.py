"""Fuzzing CEL: hostile source text must be refused or evaluated, quickly, and raise nothing but the package's errors.

``python -m bench.cel_fuzz [count] [seed]`` tries 200,000 inputs by default. Tests run a small part of the same.
"""

import sys
import time
from typing import Final

from tests.property import cel_hostile

COUNT: Final = 200_000
SLOW: Final = 5.0
"""Seconds after which an input counts as a hang."""


def main() -> None:
    """Try many inputs; print how they ended and what took longest. Ends with exit code 1 if something went wrong."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    ends: dict[str, int] = {}
    slowest = (0.0, "")
    wrong = 0
    begin = time.perf_counter()
    for block in range(0, count, 1000):
        for text in cel_hostile.inputs(seed * 1_000_003 + block, min(1000, count - block)):
            start = time.perf_counter()
            try:
                end = cel_hostile.attempt(text)
            except Exception as error:
                end = f"WRONG {type(error).__name__}"
                wrong += 1
                print(f"{type(error).__name__}: {error}\n  {text!r}")
            taken = time.perf_counter() - start
            if taken > SLOW:
                wrong += 1
                print(f"{taken:.1f} s\n  {text!r}")
            ends[end] = ends.get(end, 0) + 1
            slowest = max(slowest, (taken, text))
    print(f"\ncel: {count} hostile inputs in {time.perf_counter() - begin:.0f} s (seed {seed})")
    for end, number in sorted(ends.items()):
        print(f"  {end:<12}{number:>9}")
    print(f"  slowest     {slowest[0] * 1000:>9.1f} ms  {slowest[1][:60]!r}")
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
