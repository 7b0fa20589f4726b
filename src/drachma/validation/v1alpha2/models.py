"""Rules for structured models: that exactly one is set, and for selectors of named resources."""

from collections.abc import Mapping, Sequence
from typing import Final

from drachma import cel
from drachma.api.gates import Gates
from drachma.cel import namedresources
from drachma.structured import selectors
from drachma.validation import expression, fielderror, limits, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names

_NONE: Final = "exactly one structured model field must be set"
_SEVERAL: Final = "exactly one field must be set, not several"
_TOO_COMPLEX: Final = "too complex, exceeds cost limit"


def exactly_one(models: Mapping[str, object], at: Path) -> Errors:
    """Yield an error unless exactly one of the model fields, by name, is set."""
    present = [name for name, value in models.items() if value is not None]
    if not present:
        yield fielderror.required(at, _NONE)
    yield from check_at_most_one(present, at)


def check_at_most_one(present: Sequence[str], at: Path) -> Errors:
    """Yield an error if several of the model fields are set."""
    if len(present) > 1:
        yield fielderror.invalid(at, rendering.wire(sorted(present)), _SEVERAL)


def check_selector(text: str, at: Path, *, driver: str, gates: Gates) -> Errors:
    """Yield the errors of a selector, also of the device selector that it becomes."""
    if names.byte_length(text) > limits.CEL_BYTES:
        yield fielderror.too_long(at, limits.CEL_BYTES)
        return
    try:
        cost = namedresources.max_cost(text)
        translated = selectors.driver_selector(text, driver)
    except cel.CompilationError as error:
        yield fielderror.invalid(at, text, str(error))
        return
    if cost > limits.CEL_COST:
        yield fielderror.forbidden(at, _TOO_COMPLEX)
        return
    for problem in expression.check_selector(translated, at, gates=gates):
        yield fielderror.replace_detail(problem, f"as a device selector: {problem.detail}")
