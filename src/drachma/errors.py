"""The exception tree of drachma; every error a caller may want to catch is in it.

::

    DrachmaError                 anything drachma refuses to do, with a message for people
    ├── InvalidValueError        a text is not a value of its kind (quantity, version, name, selector)
    ├── DecodeError              bytes are not a well-formed object of a known kind
    ├── CelError                 an expression does not compile, or failed when it was evaluated
    ├── AllocationError          a claim, class or slice is such that allocating makes no sense on any node
    │   └── InvalidPoolError     the pools of one node are invalid; other nodes may still do
    ├── RequestError             an API server refuses a request; carries the Status that says why
    └── StoreError               the store refuses a read, a write or a whole data directory
        ├── AlreadyExistsError   a create found the key taken
        ├── NotFoundError        an update or delete found nothing under the key
        ├── ConflictError        a precondition on revision or uid does not hold
        ├── GoneError            a revision is compacted, or a watcher fell behind the log
        ├── FutureRevisionError  a revision has not been reached yet
        ├── WriteFailedError     the disk refused a write; the store stays readable
        │   └── DiskFullError    because no room is left; it works again once there is
        ├── RefusedFileError     a data file is foreign, damaged, or newer than this version
        ├── DirectoryInUseError  another process has the data directory open
        └── StoreClosedError     the store was closed before the write was accepted

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


class RequestError(DrachmaError):
    """An API server refuses a request; the message is that of the Status that answers it."""


class AllocationError(DrachmaError):
    """Input that the allocator refuses; a scheduler reports it instead of trying other nodes."""


class InvalidPoolError(AllocationError):
    """Nothing fits on the node and some of its pools are invalid; a scheduler goes on with other nodes."""


class StoreError(DrachmaError):
    """The store refuses a read, a write or a whole data directory."""


class AlreadyExistsError(StoreError):
    """A create found the key taken."""


class NotFoundError(StoreError):
    """An update or delete found nothing under the key."""


class ConflictError(StoreError):
    """A precondition on revision or uid does not hold; read again before trying again."""


class GoneError(StoreError):
    """The history asked for is compacted, or a watcher fell behind it; list again and watch from there."""


class FutureRevisionError(StoreError):
    """A revision has not been reached yet."""


class WriteFailedError(StoreError):
    """The disk refused a write. It is not visible, later writes may succeed, and reads go on."""


class DiskFullError(WriteFailedError):
    """No room is left for a write; writes succeed again once there is."""


class RefusedFileError(StoreError):
    """A data file is foreign, damaged, or newer than this version; it was left as it was found."""


class DirectoryInUseError(StoreError):
    """Another process has the data directory open."""


class StoreClosedError(StoreError):
    """The store was closed before the write was accepted."""
