"""Token files: lines of ``token,user,uid,"group,group"``, as upstream reads them."""

import csv
import pathlib

from drachma import errors
from drachma.server.user import User

_COLUMNS = 3


def read(path: pathlib.Path) -> dict[str, User]:
    """Return users by token. The last line of a token counts; lines without a token do not.

    Raises:
        errors.RefusedFileError: the file cannot be read, or a line is too short.
    """
    users: dict[str, User] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.reader(file, strict=True, skipinitialspace=True):
                if not line or not line[0]:
                    continue
                if len(line) < _COLUMNS:
                    raise errors.RefusedFileError(
                        f"token file {path}: must have at least {_COLUMNS} columns (token, user name, user uid), "
                        f"found {len(line)}"
                    )
                token, name, uid, *more = line
                groups = tuple(more[0].split(",")) if more and more[0] else ()
                users[token] = User(name=name, uid=uid, groups=groups)
    except OSError as error:
        raise errors.RefusedFileError(f"token file {path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise errors.RefusedFileError(f"token file {path}: cannot be read: {error}") from error
    return users
