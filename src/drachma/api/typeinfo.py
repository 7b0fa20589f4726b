"""Type information of structs, built before threads need it.

msgspec builds the type information of a struct when it is first decoded. Two threads that do this at the same time can
end the process: the second one uses information that the first has not filled in yet (msgspec 0.22). Code that decodes
in threads calls :func:`build` first, on the event loop.
"""

import contextlib
from collections.abc import Iterator

import msgspec

_built: set[type[msgspec.Struct]] = set()


def build() -> None:
    """Build the type information of all structs that are defined so far. Repeated calls take about a millisecond."""
    for each in _subclasses(msgspec.Struct):
        if each not in _built:
            _built.add(each)
            # Structs that are never decoded may have fields of any type.
            with contextlib.suppress(TypeError, NameError):
                msgspec.json.Decoder(each)


def _subclasses(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in base.__subclasses__():
        yield each
        yield from _subclasses(each)
