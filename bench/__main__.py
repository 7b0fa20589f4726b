"""Runs every benchmark, or those named on the command line: ``python -m bench [api cel ...]``."""

import importlib
import sys

BENCHMARKS = (
    "values",
    "validation",
    "api",
    "cel",
    "allocator",
    "scheduler",
    "queueing",
    "topologies",
    "queueload",
    "queuecreation",
    "simulate",
    "timeline",
    "traces",
    "eta",
    "when",
    "gangs",
    "nodes",
    "store",
    "server",
    "bodies",
    "holds",
    "policies",
    "webhooks",
    "client",
    "customresources",
    "authorisation",
    "drivers",
    "hostile",
    "memory",
    "dashboard",
    "walks",
)


def main() -> None:
    for name in sys.argv[1:] or BENCHMARKS:
        importlib.import_module(f"bench.{name}").main()


main()
