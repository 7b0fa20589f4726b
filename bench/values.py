"""Cost of the values on the hot path: parsing, comparing and adding quantities, versions, selectors."""

import timeit
from collections.abc import Callable

from drachma.values import labels, nodes, notation, quantity, semver

_LOOPS = 50_000
_REPEATS = 5


def main() -> None:
    """Print one line an operation: the best of five runs, in microseconds."""
    small, large = quantity.Quantity.parse("512Mi"), quantity.Quantity.parse("4Gi")
    milli = quantity.Quantity.parse("500m")
    older, newer = semver.SemVer.parse("1.2.3"), semver.SemVer.parse("1.2.4-rc.1")
    node_labels = {"kubernetes.io/hostname": "n1", "zone": "a", "cores": "64"}
    selector = labels.Selector.from_parts({"zone": "a"}, [("cores", "In", ("32", "64"))])
    by_name = nodes.NodeSelectorMatcher.compile(
        [nodes.Term(match_fields=[nodes.Expression("metadata.name", "In", ("n1",))])]
    )
    rows: list[tuple[str, Callable[[], object]]] = [
        ("quantity: parse, seen before", lambda: quantity.Quantity.parse("512Mi")),
        ("quantity: read 8", lambda: notation.parse("8")),
        ("quantity: read 512Mi", lambda: notation.parse("512Mi")),
        ("quantity: read 100m", lambda: notation.parse("100m")),
        ("quantity: read 1.5Gi", lambda: notation.parse("1.5Gi")),
        ("quantity: compare", lambda: small < large),
        ("quantity: equal", lambda: small == large),
        ("quantity: add", lambda: small + large),
        ("quantity: add, other scale", lambda: large + milli),
        ("quantity: multiply", lambda: small * 3),
        ("quantity: canonical form", lambda: notation.canonical(large.nanos, large.format)),
        ("version: parse, seen before", lambda: semver.SemVer.parse("1.2.3-rc.1")),
        ("version: parse and normalise", lambda: semver.SemVer.parse_tolerant("v1.2")),
        ("version: compare", lambda: older < newer),
        ("labels: match two requirements", lambda: selector.matches(node_labels)),
        ("nodes: match by name", lambda: by_name.matches(node_labels, "n1")),
    ]
    print(f"{'values':<36}{'us':>8}")
    for name, operation in rows:
        best = min(timeit.repeat(operation, number=_LOOPS, repeat=_REPEATS)) / _LOOPS
        print(f"{name:<36}{best * 1e6:>8.2f}")


if __name__ == "__main__":
    main()
