"""Churns at length: ``python -m tests.scenarios.churn --operations 10000 --seed 1``."""

import argparse
import asyncio
import itertools
import logging
import sys
import time

from tests.scenarios.churn import churning, mixing
from tests.scenarios.churn.violation import ViolationError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.churn", description=__doc__)
    parser.add_argument("--operations", type=int, default=10_000, help="operations in all")
    parser.add_argument("--each", type=int, default=1000, help="operations before everything has to come to rest")
    parser.add_argument("--seed", type=int, default=1, help="the first seed; each round takes the next")
    given = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    done, seed = 0, given.seed
    kinds = itertools.cycle((churning.Churn, mixing.MixedChurn))
    while done < given.operations:
        began = time.perf_counter()
        try:
            churn = asyncio.run(churning.run(seed, min(given.each, given.operations - done), kind=next(kinds)))
        except ViolationError as violation:
            sys.stdout.write(f"VIOLATED: {violation}\n")
            return 1
        done += churn.operations
        seconds = time.perf_counter() - began
        what = f"{type(churn).__name__}, seed {seed}: {churn.operations} operations"
        sys.stdout.write(f"{what} in {seconds:.0f} s, all is well ({done} so far)\n")
        sys.stdout.flush()
        seed += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
