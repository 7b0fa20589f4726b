"""The exception tree of drachma; every error a caller may want to catch is in it.

::

    DrachmaError                 anything drachma refuses to do, with a message for people
    ├── InvalidValueError        a text is not a value of its kind (quantity, version, name, selector)
    ├── DecodeError              bytes are not a well-formed object of a known kind
    └── CelError                 an expression does not compile, or failed when it was evaluated

"Does not fit" is not an error: the allocator returns it as data.
"""


class DrachmaError(Exception):
    """The root of the tree. ``str(error)`` is one complete message: subject first, lower case."""


class InvalidValueError(DrachmaError, ValueError):
    """A text is not a value of its kind; the message shows the text and the rule it breaks."""


class DecodeError(DrachmaError, ValueError):
    """Bytes are not a well-formed object of a known kind; the message names the path."""


class CelError(DrachmaError):
    """A CEL expression does not compile, or failed when it was evaluated."""
