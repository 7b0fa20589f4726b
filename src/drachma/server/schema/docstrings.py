"""What types and their fields mean, in our words, for OpenAPI and ``kubectl explain``.

A text is a line, ``Type: text`` or ``Type.field: text``. A type without one has the docstring of the struct of its
name, in the modules that are given.
"""

import inspect
from collections.abc import Mapping, Sequence
from types import ModuleType

from drachma.api import struct


class Descriptions:
    """The descriptions of some types; empty texts where there are none."""

    def __init__(self, texts: str, modules: Sequence[ModuleType] = ()) -> None:
        lines = (line.partition(": ") for line in texts.splitlines())
        self._texts = {name: text for name, _, text in lines}
        self._docstrings = _docstrings(modules)

    def of_type(self, name: str) -> str:
        return self._texts.get(name) or self._docstrings.get(name, "")

    def of_field(self, owner: str, name: str) -> str:
        return self._texts.get(f"{owner}.{name}", "")


def _docstrings(modules: Sequence[ModuleType]) -> Mapping[str, str]:
    """The first paragraph of every struct's docstring, without the marks that are only for people who read code."""
    texts: dict[str, str] = {}
    for module in modules:
        for name, shape in inspect.getmembers(module, inspect.isclass):
            if issubclass(shape, struct.Struct) and shape.__module__ == module.__name__ and shape.__doc__:
                paragraph = inspect.cleandoc(shape.__doc__).partition("\n\n")[0]
                texts[name] = " ".join(paragraph.replace("``", "").split())
    return texts
