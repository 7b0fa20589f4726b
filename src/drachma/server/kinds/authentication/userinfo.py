"""What the API says about a user, in all kinds that do."""

from typing import Any, Final

from drachma.server.schema import notation
from drachma.server.user import User

_TYPES: Final = """\
UserInfo: extra=<[str]> groups=[str] uid=str username=str
"""
_NUMBERS: Final = """\
UserInfo: username uid groups extra
"""
_TEXTS: Final = """\
UserInfo: Who somebody is.
UserInfo.username: The name that identifies the user among all that are active.
UserInfo.uid: What tells this user from another one who had the same name.
UserInfo.groups: The groups that the user belongs to.
UserInfo.extra: What else the credentials say.
"""
USER_INFO: Final = notation.Types("io.k8s.api.authentication.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS)


def document(user: User) -> dict[str, Any]:
    """A user as a document, without what is empty."""
    content = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in content.items() if value}
