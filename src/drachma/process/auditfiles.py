"""The files of the audit log: the policy that says what is noted, and where that is written."""

import datetime as dt
import pathlib
from collections.abc import Callable

import msgspec

from drachma import errors
from drachma.server import audit
from drachma.server.pipeline import phases


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen, under the names of upstream's flags; without both files nothing is noted."""

    policy_file: pathlib.Path | None = None
    log_path: str | None = None


def load(options: AuditOptions, *, utc: Callable[[], dt.datetime]) -> tuple[phases.Auditor, ...]:
    """The auditors of a server. The log stays open as long as the process lives.

    Raises:
        errors.InvalidValueError: one file is named without the other, or they cannot be used.
    """
    if options.policy_file is None and options.log_path is None:
        return ()
    if options.policy_file is None or options.log_path is None:
        detail = "--audit-policy-file and --audit-log-path are only of use together"
        raise errors.InvalidValueError(detail)
    try:
        text = options.policy_file.read_bytes()
        policy = audit.read(text, title=str(options.policy_file))
        log = audit.Log.open(options.log_path)
    except OSError as error:
        raise errors.InvalidValueError(f"audit: {error}") from None
    return (audit.Auditor(policy, log, clock=utc),)
