"""Mutations of recorded inputs: ``python -m bench.mutations [count] [seed]`` mutates so many lines of each recording.

Everything but an answer or a refusal is printed with its input, and the exit code is 1.
"""

import asyncio
import sys
import time
import traceback
from typing import Final

from tests.property import mutations

COUNT: Final = 5000


async def _run(count: int, seed: int) -> int:
    print(f"{'recording':<20}{'answered':>10}{'refused':>10}{'wrong':>10}{'slowest':>12}")
    wrong = 0
    for name in mutations.ATTEMPTS:
        ends = {"answered": 0, "refused": 0, "wrong": 0}
        slowest = 0.0
        for case in mutations.cases(name, seed=seed, count=count):
            start = time.process_time()
            try:
                end = await mutations.attempt(name, case)
            except Exception:
                end = "wrong"
                print(f"{traceback.format_exc()}\n  {mutations.text(case)}")
            ends[end] += 1
            slowest = max(slowest, time.process_time() - start)
        wrong += ends["wrong"]
        figures = "".join(f"{number:>10}" for number in ends.values())
        print(f"{name:<20}{figures}{slowest * 1000:>9.1f} ms", flush=True)
    return wrong


def main() -> None:
    """Try the mutations. Ends with exit code 1 if one of them got neither an answer nor a refusal."""
    arguments = [int(each) for each in sys.argv[1:] if each.isdecimal()]
    count, seed = (*arguments, *(COUNT, 1)[len(arguments) :])
    if asyncio.run(_run(count, seed)):
        sys.exit(1)


if __name__ == "__main__":
    main()
