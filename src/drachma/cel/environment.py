"""Environments: which variables, types, functions and macros an expression can use, and how strict it is read.

``device_environment`` is what Kubernetes compiles device selectors in, ``base_environment`` what it compiles all other
expressions in: of policies, webhooks and custom resources, each with variables of its own. ``plain_environment`` has
the same libraries and literals of mixed types, as the language defines them. Environments are built once and shared;
nothing in them changes but the memory of overloads already resolved.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from drachma.cel import declarations, macros, sizes, types
from drachma.cel.library import (
    authorization,
    comprehensions,
    lists,
    network,
    optionals,
    resources,
    sets,
    standard,
    strings,
    texts,
)

# Limits of the API that bound what a selector can meet.
MAX_DOMAIN_LENGTH = 63
MAX_ID_LENGTH = 32
MAX_DRIVER_LENGTH = 63
MAX_ATTRIBUTE_VALUE_LENGTH = 64
MAX_ATTRIBUTES_AND_CAPACITIES = 32

DEVICE = types.object_type("kubernetes.DRADevice")

# How many results of overload resolution are remembered before starting afresh.
_MEMORY = 4096


class Resolution(NamedTuple):
    """Meaning of a call: the overloads that may apply, their result, and the number of type variables used."""

    ids: tuple[str, ...]
    result: types.Type
    variables: int


class Expressions(enum.Enum):
    """Age of an expression: new, or stored before.

    What is written now may use only what every server of the cluster understands; what was stored may use all that a
    newer server, or another set of feature gates, had accepted.
    """

    NEW = "NewExpressions"
    STORED = "StoredExpressions"
    STORED_IN_1_36 = "StoredExpressions of Kubernetes 1.36"
    """Stored, as clients of 1.36 read them: attributes of devices may be lists only where the gate for that is on."""


class Literals(enum.Enum):
    """Rule for types in list and map literals; ``UNIFORM`` also checks literals of dates and patterns."""

    UNIFORM = "uniform"
    MIXED = "mixed"


class Message(NamedTuple):
    """Meaning of a message literal: its type, and its fields by name.

    ``fields`` is None where upstream finds no message of the name ``message``. Where the type has no literals,
    ``problem`` says so; its fields are looked at all the same, and a map has all of them, of its values' type. ``make``
    makes a value of the type from those of its fields; without it there is none when the expression is evaluated.
    """

    type_name: str
    type: types.Type
    message: str
    fields: Mapping[str, types.Type] | None
    problem: str = ""
    any_field: types.Type | None = None
    make: Callable[[dict[str, Any]], Any] | None = None

    def field(self, name: str) -> types.Type | None:
        """Return the type of a field, None if there is no such field."""
        return (self.fields or {}).get(name, self.any_field)


Messages = Callable[[str], Message | None]
"""Types that can be made and are known by their names only, such as all that begin with ``Object``."""


class Environment:
    """Names that expressions can use. ``attribute`` is the type of a device attribute, in device environments."""

    def __init__(
        self,
        *,
        variables: Mapping[str, types.Type],
        functions: Mapping[str, declarations.Function],
        known_macros: macros.Macros,
        objects: Mapping[str, Mapping[str, types.Type]],
        literals: Literals,
        container: str = "",
        bounds: Mapping[str, sizes.Bound] | None = None,
        attribute: types.Type | None = None,
        messages: Messages | None = None,
    ) -> None:
        self.container = container
        declared = _declared_types(objects)
        self.variables = {
            **standard.TYPE_NAMES,
            **dict.fromkeys(standard.CONSTANTS, types.INT),
            **{name: types.type_of(type_) for name, type_ in declared.items()},
            **variables,
        }
        # Types that the checker alone knows: no value has one, so that an expression cannot name it as a value.
        self.checked_only = standard.CHECKED_ONLY | declared.keys()
        self.constants = standard.CONSTANTS
        self.functions = functions
        self.macros = known_macros
        self.objects = objects
        self.literals = literals
        self.bounds = bounds or {}
        self.attribute = attribute
        self.messages = messages
        # First words of dotted names: a chain of selections that starts otherwise is no such name.
        self.namespaces = {name.partition(".")[0] for name in functions if "." in name}
        self.packages = {name.partition(".")[0] for name in self.variables if "." in name}
        self._resolutions: dict[tuple[object, ...], Resolution] = {}
        self._called: dict[tuple[str, bool], tuple[declarations.Overload, ...]] = {}

    def candidates(self, name: str) -> list[str]:
        """Return the full names that a name can mean, innermost container first."""
        if name.startswith("."):
            return [name[1:]]
        result = []
        container = self.container
        while container:
            result.append(f"{container}.{name}")
            container = container.rpartition(".")[0]
        result.append(name)
        return result

    def function(self, name: str) -> declarations.Function | None:
        """Return the function that a name means, None if there is none."""
        if not self.container and not name.startswith("."):
            return self.functions.get(name)
        matches = (self.functions.get(candidate) for candidate in self.candidates(name))
        return next((function for function in matches if function is not None), None)

    def called(self, function: declarations.Function, *, member: bool) -> tuple[declarations.Overload, ...]:
        """Return the overloads of a function for one way of calling it."""
        key = (function.name, member)
        overloads = self._called.get(key)
        if overloads is None:
            overloads = self._called[key] = function.called(member=member)
        return overloads

    def recall(self, key: tuple[object, ...]) -> Resolution | None:
        """Return an overload resolution that was remembered for these argument types."""
        return self._resolutions.get(key)

    def remember(self, key: tuple[object, ...], resolution: Resolution) -> None:
        """Keep a resolution, which must depend on nothing but the key."""
        if len(self._resolutions) >= _MEMORY:
            self._resolutions.clear()
        self._resolutions[key] = resolution


def _declared_types(objects: Mapping[str, Mapping[str, types.Type]]) -> dict[str, types.Type]:
    """Object types by name, and the types of their maps, which upstream registers under the name of the field."""
    result: dict[str, types.Type] = {}
    for name, fields in objects.items():
        result[name] = types.object_type(name)
        maps = {f"{name}.{field}": type_ for field, type_ in fields.items() if type_.kind is types.Kind.MAP}
        result.update(maps)
    return result


_LANGUAGE = (
    standard.OPERATORS,
    standard.INDEXES,
    standard.CONVERSIONS,
    standard.TEXTS,
    standard.TIMES,
    network.URLS,
    texts.REGEX,
)
_LIBRARIES = (
    authorization.FUNCTIONS,
    optionals.FUNCTIONS,
    resources.QUANTITIES,
    strings.FUNCTIONS,
    sets.FUNCTIONS,
    network.ADDRESSES,
    texts.FORMATS,
    comprehensions.FUNCTIONS,
    resources.VERSIONS,
    lists.FUNCTIONS,
)
_BASE_MACROS: macros.Macros = {
    **macros.STANDARD,
    **macros.OPTIONALS,
    **macros.TWO_VARIABLES,
    **macros.SORTING,
}
_MACROS: macros.Macros = {**_BASE_MACROS, **macros.BINDINGS}


@functools.cache
def device_environment(
    *,
    consumable_capacity: bool,
    list_type_attributes: bool,
    expressions: Expressions = Expressions.STORED,
) -> Environment:
    """Return the environment of device selectors under two feature gates; stored expressions may use what both add."""
    is_stored = expressions is not Expressions.NEW
    is_newest = expressions is Expressions.STORED
    # Kubernetes 1.37 moves its list functions to a newer library version, which new expressions do not get yet;
    # what changes is the order of overloads, and includes.
    tables = [*_LANGUAGE, *_LIBRARIES]
    tables.insert(len(tables) if is_newest else len(_LANGUAGE), lists.KUBERNETES)
    if is_stored or list_type_attributes:
        tables.append(lists.INCLUDES)
    attribute = types.DYN if is_newest or list_type_attributes else types.ANY
    fields = {
        "driver": types.STRING,
        "attributes": types.map_of(types.STRING, types.map_of(types.STRING, attribute)),
        "capacity": types.map_of(types.STRING, types.map_of(types.STRING, types.QUANTITY)),
    }
    if is_stored or consumable_capacity:
        fields["allowMultipleAllocations"] = types.BOOL
    return Environment(
        variables={"device": DEVICE},
        functions=declarations.merged(tables),
        known_macros=_MACROS,
        objects={DEVICE.name: fields},
        literals=Literals.UNIFORM,
        bounds={"device": _DEVICE_BOUND},
        attribute=attribute,
    )


def base_environment(
    variables: Mapping[str, types.Type],
    objects: Mapping[str, Mapping[str, types.Type]] | None = None,
    *,
    expressions: Expressions = Expressions.STORED,
    functions: tuple[declarations.Function, ...] = (),
    bounds: Mapping[str, sizes.Bound] | None = None,
    messages: Messages | None = None,
) -> Environment:
    """Return the environment of all Kubernetes expressions, with these variables, object types and functions."""
    return Environment(
        variables=variables,
        functions=declarations.merged((_base_functions(expressions).values(), functions)),
        known_macros=_BASE_MACROS,
        objects=objects or {},
        literals=Literals.UNIFORM,
        bounds=bounds,
        messages=messages,
    )


@functools.cache
def _base_functions(expressions: Expressions) -> Mapping[str, declarations.Function]:
    # As for devices: the newer version of the list functions is not for new expressions yet.
    tables = [*_LANGUAGE, *_LIBRARIES]
    is_stored = expressions is Expressions.STORED
    tables.insert(len(tables) if is_stored else len(_LANGUAGE), lists.KUBERNETES)
    if is_stored:
        tables.append(lists.INCLUDES)
    return declarations.merged(tables)


def plain_environment(
    variables: Mapping[str, types.Type] | None = None,
    *,
    container: str = "",
    functions: Iterable[declarations.Function] = (),
) -> Environment:
    """Return all libraries, with the caller's variables and further functions, and literals of mixed types."""
    tables = (*_LANGUAGE, *_LIBRARIES, lists.KUBERNETES, lists.INCLUDES, tuple(functions))
    return Environment(
        variables=variables or {},
        functions=declarations.merged(tables),
        known_macros={**_MACROS, **macros.EXISTS_ONE},
        objects={},
        literals=Literals.MIXED,
        container=container,
    )


def _domain_map_bound(inner: sizes.Bound) -> sizes.Bound:
    domain = sizes.Bound(MAX_DOMAIN_LENGTH)
    return sizes.Bound(MAX_ATTRIBUTES_AND_CAPACITIES, key=domain, element=inner)


_ID_BOUND = sizes.Bound(MAX_ID_LENGTH)
# Upstream knows no size of a quantity, nor of the device as a whole, and takes them for empty.
_DEVICE_BOUND = sizes.Bound(
    0,
    fields={
        "driver": sizes.Bound(MAX_DRIVER_LENGTH),
        "attributes": _domain_map_bound(
            sizes.Bound(
                MAX_ATTRIBUTES_AND_CAPACITIES,
                key=_ID_BOUND,
                element=sizes.Bound(MAX_ATTRIBUTE_VALUE_LENGTH),
                any_name=True,
            )
        ),
        "capacity": _domain_map_bound(
            sizes.Bound(MAX_ATTRIBUTES_AND_CAPACITIES, key=_ID_BOUND, element=sizes.Bound(0))
        ),
        "allowMultipleAllocations": sizes.Bound(1),
    },
)
