"""Names of a driver's sockets. Pure.

Instances that run side by side during a rolling update have their pod's uid in both names. A socket's whole path has a
limit, so the uid, and then the driver's name, give way to hashes where they do not fit.
"""

import base64
import hashlib
import pathlib
from typing import Final

_LONGEST_PATH: Final = 108
_SUFFIX: Final = "-reg.sock"


def dra(pod_uid: str = "") -> str:
    """Return the socket on which claims are prepared; in a directory of the driver's own."""
    return f"dra-{pod_uid}.sock" if pod_uid else "dra.sock"


def registration(driver: str) -> str:
    """Return the socket that node agents look for, in the directory of all drivers."""
    return f"{driver}{_SUFFIX}"


def rolling_registration(directory: pathlib.Path, driver: str, *, pod_uid: str) -> str:
    """Return the name for one of several instances: the most readable name that fits."""
    both = "\0".join((driver, pod_uid))
    names = (
        f"{driver}-{pod_uid}{_SUFFIX}",
        f"{driver}-{_hash(pod_uid, size=8)}{_SUFFIX}",
        f"dra-{_hash(both, size=16)}{_SUFFIX}",
    )
    return next((name for name in names if len(str(directory / name).encode()) <= _LONGEST_PATH), names[-1])


def _hash(text: str, *, size: int) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:size]).rstrip(b"=").decode()
