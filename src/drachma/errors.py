"""The exception tree of drachma; every error a caller may want to catch is in it.

::

    DrachmaError                 anything drachma refuses to do, with a message for people
    ├── InvalidValueError        a text is not a value of its kind (quantity, version, name, selector)
    ├── DecodeError              bytes are not a well-formed object of a known kind
    ├── CelError                 an expression does not compile, or failed when it was evaluated
    ├── AllocationError          a claim, class or slice cannot be allocated on any node
    │   └── InvalidPoolError     the pools of one node are invalid; other nodes may still fit
    ├── RequestError             an API server refuses a request; carries the Status that says why
    │   └── RefusedError         the same at a client; its subclasses are reasons that callers distinguish
    │       ├── BadRequestError      400: the request cannot be understood
    │       ├── UnauthorizedError    401: no credentials, or none that are known
    │       ├── ForbiddenError       403: this user may not do this, or no user may at the moment
    │       ├── ObjectNotFoundError  404: no such object, or no such resource
    │       ├── ObjectExistsError    409: the name is taken
    │       ├── ObjectConflictError  409: another write came first, or a precondition does not hold
    │       ├── HistoryGoneError     410: the resourceVersion or list position is no longer kept
    │       ├── InvalidObjectError   422: the object breaks rules
    │       ├── ThrottledError       429: too many requests at once, or an eviction is not allowed yet
    │       └── ServerFaultError     5xx: the server failed, or could not answer in time
    ├── CommitRefusedError       one change of a commit is refused, so no change happens
    ├── UnreachableError         no answer from an API server: no connection, broken off, or not an API server
    ├── ReconcileError           a controller cannot reconcile an object; it retries later
    ├── NodeError                a node agent cannot run a pod; it retries later
    │   └── LostDeviceError          the pod's devices are gone; only another pod can get others
    ├── DriverError              a driver cannot do its work, or publishes invalid devices
    │   ├── DeviceUnavailableError   a device of a claim is gone; only another allocation can help
    │   ├── UnknownClaimError        a claim that should be prepared does not exist
    │   └── DroppedFieldsError   an API server did not store all of a slice: features are off
    ├── AccessError              a kubeconfig or a service account gives no access to an API server
    └── StoreError               the store refuses a read, a write or a whole data directory
        ├── PreconditionError    a precondition of a write does not hold; carries the key of that write
        │   ├── AlreadyExistsError   a create found the key taken
        │   ├── NotFoundError        an update or delete found nothing under the key
        │   └── ConflictError        a precondition on revision or uid does not hold
        ├── GoneError            a revision is compacted, or a watcher fell behind the log
        ├── FutureRevisionError  a revision has not been reached yet
        ├── WriteFailedError     the disk refused a write; the store stays readable
        │   └── DiskFullError    because no room is left; it works again once there is
        ├── RefusedFileError     a data file is foreign, damaged, or newer than this version
        │   └── DamagedFileError     because it is damaged or acknowledged writes are missing
        ├── CipherError          an object cannot be encrypted or decrypted
        ├── DirectoryInUseError  another process has the data directory open
        └── StoreClosedError     the store was closed before the write was accepted

"Does not fit" is not an error: the allocator returns it as data.
"""

from collections.abc import Mapping
from typing import Any, Final


class DrachmaError(Exception):
    """The root of the tree. ``str(error)`` is one complete message: subject first, lower case."""


class InvalidValueError(DrachmaError, ValueError):
    """A text is not a value of its kind; the message shows the text and the rule it breaks."""


class DecodeError(DrachmaError, ValueError):
    """Bytes are not a well-formed object of a known kind; the message names the path."""


class CelError(DrachmaError):
    """A CEL expression does not compile, or failed when it was evaluated."""


class RequestError(DrachmaError):
    """An API server refuses a request; the message comes from the Status in its answer."""


class RefusedError(RequestError):
    """A request was answered with a Status of failure, ``document``; the branches below are its reasons."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(document.get("message") or document.get("reason") or "the request failed without a message")
        self.document: Final = document

    @property
    def code(self) -> int:
        return int(self.document.get("code") or 0)

    @property
    def reason(self) -> str:
        return str(self.document.get("reason") or "")

    @property
    def details(self) -> Mapping[str, Any]:
        return self.document.get("details") or {}

    @property
    def retry_after(self) -> float | None:
        """After how many seconds the server wants to be asked again, where it says so."""
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if seconds else None


class BadRequestError(RefusedError):
    """The request cannot be understood."""


class UnauthorizedError(RefusedError):
    """The request has no credentials, or none that the server knows."""


class ForbiddenError(RefusedError):
    """The user may not do this, or no user may do it at the moment."""


class ObjectNotFoundError(RefusedError):
    """There is no such object, or the server does not have such a resource."""


class ObjectExistsError(RefusedError):
    """A create found the name taken."""


class ObjectConflictError(RefusedError):
    """Another write came first, or a precondition does not hold; read again before trying again."""


class HistoryGoneError(RefusedError):
    """The resourceVersion or position in a list is no longer kept; list again and watch from there."""


class InvalidObjectError(RefusedError):
    """The object breaks rules of its kind; ``details`` names every field."""


class ThrottledError(RefusedError):
    """The server takes no more requests now, or does not allow an eviction yet."""


class ServerFaultError(RefusedError):
    """The server failed, cannot serve now, or did not answer in time; a write may have happened or not."""


class CommitRefusedError(DrachmaError):
    """A commit is refused because of its change at ``position``, for the reason ``refusal``; no change happens."""

    def __init__(self, refusal: RefusedError, position: int) -> None:
        super().__init__(str(refusal))
        self.refusal: Final = refusal
        self.position: Final = position


class UnreachableError(DrachmaError):
    """No answer that makes sense: no connection, broken off, or not an API server; a write may have happened."""


class NodeError(DrachmaError):
    """A node agent cannot do what a pod needs, or not yet; it tries again later."""


class LostDeviceError(NodeError):
    """Devices of a pod are gone. Its owner can create another pod, which gets other devices."""


class DriverError(DrachmaError):
    """A driver cannot do what is asked of it, or what it wants to publish makes no sense."""


class DeviceUnavailableError(DriverError):
    """A device of a claim is gone; only another allocation can help."""


class UnknownClaimError(DriverError):
    """A claim that a driver should prepare does not exist."""


class DroppedFieldsError(DriverError):
    """An API server did not store all of a slice, probably because these ``features`` are off there."""

    def __init__(self, message: str, features: tuple[str, ...]) -> None:
        super().__init__(message)
        self.features: Final = features


class ReconcileError(DrachmaError):
    """A controller cannot bring an object to where it should be; it tries again later."""


class AccessError(DrachmaError):
    """A kubeconfig, a credential plugin or a service account does not say how to reach an API server."""


class AllocationError(DrachmaError):
    """Input that the allocator refuses; a scheduler reports it instead of trying other nodes."""


class InvalidPoolError(AllocationError):
    """Nothing fits on the node and some of its pools are invalid; a scheduler goes on with other nodes."""


class StoreError(DrachmaError):
    """The store refuses a read, a write or a whole data directory."""


class PreconditionError(StoreError):
    """A precondition of a write does not hold; ``key`` (resource, namespace, name) is the write of the commit."""

    def __init__(self, key: tuple[str, str, str], cause: str) -> None:
        super().__init__(f"{key}: {cause}")
        self.key: Final = key


class AlreadyExistsError(PreconditionError):
    """A create found the key taken."""


class NotFoundError(PreconditionError):
    """An update or delete found nothing under the key."""


class ConflictError(PreconditionError):
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


class DamagedFileError(RefusedFileError):
    """A data file is damaged, or acknowledged writes are missing; ``drachma store repair`` saves the rest."""


class CipherError(StoreError):
    """An object cannot be encrypted or decrypted: no provider has its key, or the key's plugin does not answer."""


class DirectoryInUseError(StoreError):
    """Another process has the data directory open."""


class StoreClosedError(StoreError):
    """The store was closed before the write was accepted."""
