"""Every cache is bounded in bytes, or has a reason why no client can make it large."""

import ast
import pathlib
from collections.abc import Iterator

import drachma

SOURCES = pathlib.Path(drachma.__file__).parent

BOUNDED_BY_COUNT = {
    "api/codec.py": "by the type of a struct",
    "api/defaults.py": "by the type of a struct",
    "api/shape.py": "by the type of a struct",
    "bounds/memory.py": "remember(): texts have a length limit",
    "cel/admission.py": "by dialect and kind of expressions",
    "cel/cache.py": "by gates: one cache of programs for each combination, and those are bounded in bytes",
    "cel/environment.py": "by gates and kind of expressions",
    "cel/namedresources.py": "no arguments",
    "client/local.py": "by kind; small objects by number, larger ones are bounded in bytes",
    "client/target.py": "by the type of a struct",
    "client/wire.py": "by kind and version of components",
    "listening/exchange.py": "status codes, and headers that the server sets itself",
    "node/setup/volumes/beneath.py": "no arguments",
    "node/setup/volumes/subpathmounts.py": "no arguments",
    "offline/clusterfiles.py": "no arguments",
    "process/encryption.py": "by the name of a served resource",
    "scheduler/recording/recordlines.py": "by the type of a struct",
    "server/calls/options.py": "options of at most 512 characters",
    "server/ownership/fieldset.py": "keys and names of together at most 256 characters",
    "server/ownership/managers.py": "managers of at most 512 characters",
    "server/presentation/negotiation.py": "headers of at most 1024 characters",
    "server/wire/requests.py": "queries of at most 256 bytes",
    "store/sqlite_journal.py": "by the number of rows in a statement",
    "validation/internalform.py": "by the name of a type of the API",
    "validation/writes.py": "by type, served version and gates",
    "values/timezones.py": "no arguments",
    "values/names.py": "names of at most 316 characters: callers look at the length first",
}
"""Modules that have a cache of the standard library, and the reason why its entries are small."""


def caches(tree: ast.AST) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("lru_cache", "cache")
            and ast.unparse(node.value) == "functools"
        ):
            yield node


def test_no_cache_is_bounded_by_count_without_a_reason() -> None:
    modules = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if "cache" in (text := path.read_text()) and next(caches(ast.parse(text)), None) is not None
    }
    assert modules == set(BOUNDED_BY_COUNT)


def test_caches_are_not_imported_by_name() -> None:
    """The test above would not see them."""
    for path in SOURCES.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "from functools" in text else ():
            if isinstance(node, ast.ImportFrom) and node.module == "functools":
                assert {alias.name for alias in node.names}.isdisjoint({"lru_cache", "cache"}), path
