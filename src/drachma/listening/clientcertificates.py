"""Client certificates that cannot be verified: the handshake succeeds, and the server answers 401, as upstream does.

Python's ssl ends a handshake with such a certificate; OpenSSL itself leaves that to a callback. :func:`tolerate` sets
the callback in the library that Python is linked with, and :class:`Connection` notes its results. A certificate is
trusted only if OpenSSL has accepted its whole chain in the handshake of this very connection. Sessions are not resumed,
because a resumed one has no verification.

Pythons whose ssl is not linked with a shared OpenSSL keep the behaviour of Python's ssl.
"""

import _ssl
import ctypes
import ssl
import sys
import threading
from typing import Any, Final

_NEWEST_LAYOUT: Final = (3, 14)
"""Newest Python whose context begins with the pointer to OpenSSL's context, as all before it."""

_SET_SESSION_CACHE: Final = 44
_CACHE_OFF: Final = 0

_MODES: Final = {ssl.CERT_NONE: 0, ssl.CERT_OPTIONAL: 1, ssl.CERT_REQUIRED: 3}
"""OpenSSL's values of Python's modes."""

_FUNCTIONS: Final = ("SSL_CTX_ctrl", "SSL_CTX_get_verify_mode", "SSL_CTX_set_verify")

_Callback: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)


class Connection(ssl.SSLObject):
    """TLS of one connection, with the result of verifying the client's certificate."""

    _accepted = 0
    _refused = 0

    def do_handshake(self) -> None:
        """Continue the handshake. Raises SSLWantReadError until the client has sent its part."""
        _here.connection = self
        try:
            super().do_handshake()
        finally:
            _here.connection = None

    def note(self, *, is_accepted: bool) -> None:
        """Record the verification of one certificate of the client's chain."""
        if is_accepted:
            self._accepted += 1
        else:
            self._refused += 1

    @property
    def is_verified(self) -> bool:
        """True if the client showed a certificate and its whole chain was accepted."""
        return self._accepted > 0 and self._refused == 0


class _Here(threading.local):
    connection: Connection | None = None


_here: Final = _Here()


def _verify(is_accepted: int, _store: int | None) -> int:
    """Note the result of OpenSSL, and let the handshake go on if a connection takes the note."""
    connection = _here.connection
    if connection is None:
        return is_accepted
    connection.note(is_accepted=bool(is_accepted))
    return 1


_VERIFY: Final = _Callback(_verify)
"""The callback for OpenSSL, which must exist as long as any context."""


def tolerate(context: ssl.SSLContext) -> bool:
    """Let handshakes of a server succeed with any client certificate; return False if this Python does not allow it.

    Connections of the context are then of the class :class:`Connection`.
    """
    library = _library()
    if library is None:
        return False
    pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__)
    if library.SSL_CTX_get_verify_mode(pointer) != _MODES[context.verify_mode]:
        # This is not the library, or not the place, of Python's own context.
        return False
    context.sslobject_class = Connection
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    library.SSL_CTX_ctrl(pointer, _SET_SESSION_CACHE, _CACHE_OFF, None)
    library.SSL_CTX_set_verify(pointer, int(ssl.CERT_OPTIONAL), _VERIFY)
    return True


def is_verified(connection: Any) -> bool:
    """Return True if the client certificate of a connection was verified; without tolerance, it always was."""
    return connection.is_verified if isinstance(connection, Connection) else True


def _library() -> ctypes.CDLL | None:
    """Return the OpenSSL that Python's ssl uses; None if it is part of the interpreter, or the layout is unknown."""
    path = getattr(_ssl, "__file__", None)
    if path is None or sys.implementation.name != "cpython" or sys.version_info[:2] > _NEWEST_LAYOUT:
        return None
    library = ctypes.CDLL(path)
    if not all(hasattr(library, name) for name in _FUNCTIONS):
        return None
    library.SSL_CTX_get_verify_mode.argtypes = [ctypes.c_void_p]
    library.SSL_CTX_get_verify_mode.restype = ctypes.c_int
    library.SSL_CTX_set_verify.argtypes = [ctypes.c_void_p, ctypes.c_int, _Callback]
    library.SSL_CTX_set_verify.restype = None
    library.SSL_CTX_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
    library.SSL_CTX_ctrl.restype = ctypes.c_long
    return library
