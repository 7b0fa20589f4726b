"""A small module that only one neighbour imports is merged into it, or has a reason to be a module of its own."""

import collections
import pathlib
import re
from collections.abc import Iterator

import drachma

SOURCES = pathlib.Path(drachma.__file__).parent
SMALL = 80
"""Lines below which a module is small."""
LARGE = 350
"""Lines above which a module does not get longer by a merge."""
TABLES = {"__init__.py", "builtin.py", "descriptors.py"}
"""Modules that list others: exports of a package, records of kinds, controllers."""

REASONS = {
    "drachma.cel.runtime.maps": "one module for each library of CEL",
    "drachma.cel.runtime.optionals": "one module for each library of CEL",
    "drachma.cel.runtime.sets": "one module for each library of CEL",
    "drachma.cli.replaylines": "imported by the command when it runs, which keeps its help fast",
    "drachma.driver.webhook.reviews": "pure answers, apart from the server that sends them",
    "drachma.scheduler.snapshot.nominations": "one module for each part of a snapshot",
    "drachma.server.kinds.core.labelkeys": "a pure change of a pod, apart from its strategy",
    "drachma.server.patch.mergepatch": "one module for each type of patch",
    "drachma.simulate.packing.openb": "the reader of a file format, apart from the trials on its content",
    "drachma.validation.v1alpha2.parameters": "one module for the rules of each kind; `rules` is their table",
    "drachma.validation.v1alpha2.resourceslice": "one module for the rules of each kind; `rules` is their table",
    "drachma.exporter.queuecensus": "queues, apart from devices, claims and pods",
    "drachma.web.live": "the stream of events, apart from the pages",
}

_IMPORT = re.compile(r"^[ ]*from (drachma[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_NAME = re.compile(r"\w+(?= as )|\w+(?=\s*(?:,|\)|$|\n|#))")
_RULE = re.compile(r"\b((?:\w+\.)?\w+)\.\w+")


def module_name(path: pathlib.Path) -> str:
    parts = path.relative_to(SOURCES.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: pathlib.Path, text: str) -> Iterator[str]:
    if path.suffix == ".rules":
        yield from (f"drachma.validation.{reference}" for reference in _RULE.findall(text))
    for package, names in _IMPORT.findall(text):
        yield package
        yield from (f"{package}.{name}" for name in _NAME.findall(names))


def test_small_modules_have_a_reason() -> None:
    texts = {path: path.read_text() for suffix in ("py", "rules") for path in SOURCES.rglob(f"*.{suffix}")}
    modules = {module_name(path): path for path in texts if path.suffix == ".py"}
    importers: dict[str, set[str]] = collections.defaultdict(set)
    for path, text in texts.items():
        for name in imports(path, text):
            if name in modules and name != module_name(path):
                importers[name].add(module_name(path))

    def lines(name: str) -> int:
        return texts[modules[name]].count("\n")

    def is_part(name: str, path: pathlib.Path) -> bool:
        """Return True if a module could as well be part of the only one that imports it."""
        if lines(name) >= SMALL or path.name in TABLES or len(importers[name]) != 1:
            return False
        host = modules[next(iter(importers[name]))]
        is_neighbour = host.parent == path.parent and host.name not in TABLES
        return is_neighbour and lines(name) + texts[host].count("\n") <= LARGE

    assert {name for name, path in modules.items() if is_part(name, path)} - set(REASONS) == set()
    assert set(REASONS) <= set(modules)
