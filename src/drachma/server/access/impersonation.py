"""Impersonation: a user acts as another one, as far as that is allowed (KEP-5284).

A client names the other user in headers. There are several modes, each with permissions of its own, which are tried in
turn: a service account acts as the node that it is on, somebody as any node, as a service account, as any other
user, each of these on what the request is about only (``impersonate-on:MODE:VERB``), and last the old mode, which is
about everything at once. The mode that a user was allowed last is tried first, and what is wrong in the first mode
that is tried is what a client is told.
"""

import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from drachma.server import status
from drachma.server.access import accounts, authentication, authorization
from drachma.server.access.authorization import Attributes, Authoriser
from drachma.server.user import User
from drachma.validation import metadata
from drachma.values import names, quotation

PREFIX: Final = b"impersonate-"
"""How the headers begin; ASGI writes them in small letters."""

MASTERS: Final = "system:masters"

_EXTRA: Final = b"impersonate-extra-"
_GROUP: Final = "authentication.k8s.io"
_NODE_PREFIX: Final = "system:node:"
_NODES: Final = "system:nodes"
_NODE_KEYS: Final = f"{accounts.EXTRA}associated-node-keys"
_MANY: Final = 4
"""Groups or extra values from which on it is first asked whether all are allowed."""

_REMEMBERED: Final = 10_000
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def wanted_user(headers: Iterable[tuple[bytes, bytes]]) -> User | None:
    """The user that headers name, without anything that the server adds; None where they name none.

    Raises:
        status.StatusError: they say something about a user whom they do not name.
    """
    name = uid = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for raw, value in headers:
        if not raw.startswith(PREFIX):
            continue
        text = value.decode("latin-1")
        if raw == b"impersonate-user":
            name = name or text
        elif raw == b"impersonate-uid":
            uid = uid or text
        elif raw == b"impersonate-group":
            groups.append(text)
        elif raw.startswith(_EXTRA):
            extra.setdefault(urllib.parse.unquote(raw[len(_EXTRA) :].decode("latin-1")), []).append(text)
    if name:
        return User(name=name, uid=uid, groups=tuple(groups), extra={key: tuple(each) for key, each in extra.items()})
    if uid or groups or extra:
        shown = _shown(uid, groups, extra)
        raise status.bad_request(f"requested {shown} without impersonating a user name")
    return None


class Impersonated(NamedTuple):
    """The user that somebody acts as, and the permission on which; the old mode has no name."""

    user: User
    constraint: str


class Impersonation:
    """Decides as whom users may act. Remembers of each which mode was the last that was allowed."""

    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser
        self._last: dict[str, _Mode] = {}

    def become(self, wanted: User, attributes: Attributes) -> "Impersonated":
        """Whom somebody becomes for a request with some attributes.

        Raises:
            status.StatusError: not allowed; it says what was not.
        """
        name = attributes.user.name
        last = self._last.get(name)
        first: status.StatusError | None = None
        for mode in sorted(_MODES, key=lambda each: each is not last):
            if not mode.applies(wanted, attributes.user):
                continue
            try:
                changed = self._in_mode(mode, wanted, attributes)
            except status.StatusError as error:
                first = first or error
                continue
            if len(self._last) >= _REMEMBERED:
                self._last.clear()
            self._last[name] = mode
            return Impersonated(changed, f"impersonate:{mode.constraint}" if mode.constraint else "")
        assert first is not None, "the old mode is for everybody"
        raise first

    def _in_mode(self, mode: "_Mode", wanted: User, attributes: Attributes) -> User:
        user = mode.requestor(attributes.user)
        if mode.constraint:
            verb = f"impersonate-on:{mode.constraint}:{attributes.verb}"
            self._require(msgspec.structs.replace(attributes, user=user, verb=verb))
        groups = self._check_name(mode, wanted, user)
        if wanted.uid:
            self._require(mode.attributes(user, "uids", wanted.uid, group=_GROUP))
        self._check_groups(mode, wanted, user)
        self._check_extra(mode, wanted, user)
        return _completed(msgspec.structs.replace(wanted, groups=groups))

    def _check_name(self, mode: "_Mode", wanted: User, user: User) -> tuple[str, ...]:
        """Refuses a name that is not allowed; the groups that come with it where none are named."""
        node, account = node_name(wanted.name), account_name(wanted.name)
        if mode.constraint and node:
            name = "*" if mode is _ASSOCIATED_NODE else node
            self._require(mode.attributes(user, "nodes", name))
            return (_NODES,)
        if account is not None:
            namespace, name = account
            self._require(mode.attributes(user, "serviceaccounts", name, namespace=namespace))
            return wanted.groups or accounts.groups(namespace)
        self._require(mode.attributes(user, "users", wanted.name))
        return wanted.groups

    def _check_groups(self, mode: "_Mode", wanted: User, user: User) -> None:
        if mode.constraint:
            if "" in wanted.groups:
                detail = "impersonating the empty string group is not allowed"
                raise authorization.forbidden(mode.attributes(user, "groups", ""), detail)
            if MASTERS in wanted.groups:
                detail = "impersonating the system:masters group is not allowed"
                raise authorization.forbidden(mode.attributes(user, "groups", MASTERS), detail)
            if len(wanted.groups) >= _MANY and self._allows(mode.attributes(user, "groups", "*")):
                return
        for group in wanted.groups:
            self._require(mode.attributes(user, "groups", group))

    def _check_extra(self, mode: "_Mode", wanted: User, user: User) -> None:
        if mode.constraint:
            problem = _extra_problem(wanted.extra)
            if problem:
                raise authorization.forbidden(mode.attributes(user, "userextras", "", group=_GROUP), problem)
            is_large = len(wanted.extra) >= _MANY or sum(map(len, wanted.extra.values())) >= _MANY
            everything = mode.attributes(user, "userextras", "*", group=_GROUP, subresource="*")
            if is_large and self._allows(everything):
                return
        for key, values in wanted.extra.items():
            for value in values:
                self._require(mode.attributes(user, "userextras", value, group=_GROUP, subresource=key))

    def _allows(self, attributes: Attributes) -> bool:
        return self._authoriser.authorise(attributes).is_allowed

    def _require(self, attributes: Attributes) -> None:
        authorization.require(self._authoriser, attributes)


class _Mode(NamedTuple):
    """One way to act as somebody; ``constraint`` is its name in verbs, which the old one has not."""

    constraint: str

    def applies(self, wanted: User, requestor: User) -> bool:
        """Whether users like the one that is wanted can be impersonated so at all."""
        if not self.constraint:
            return True
        node, account = node_name(wanted.name), account_name(wanted.name)
        if self is _USER_INFO:
            return not node and account is None
        if wanted.uid or wanted.groups or wanted.extra:
            return False
        if self is _SERVICE_ACCOUNT:
            return account is not None
        return bool(node) and (self is _ARBITRARY_NODE or _is_on(requestor, node))

    def requestor(self, user: User) -> User:
        """The user as authorisers see it: of an account on a node that it acts as, all accounts there are alike."""
        if self is not _ASSOCIATED_NODE:
            return user
        return msgspec.structs.replace(user, extra={_NODE_KEYS: tuple(sorted(user.extra))})

    def attributes(
        self,
        user: User,
        resource: str,
        name: str,
        *,
        group: str | None = None,
        namespace: str = "",
        subresource: str = "",
    ) -> Attributes:
        """The question whether a user may become something; users and groups are of the core group in the old mode."""
        default = _GROUP if self.constraint else ""
        return Attributes(
            user=user,
            verb=f"impersonate:{self.constraint}" if self.constraint else "impersonate",
            group=default if group is None else group,
            version="v1",
            resource=resource,
            subresource=subresource,
            name=name,
            namespace=namespace,
        )


_ASSOCIATED_NODE: Final = _Mode("associated-node")
_ARBITRARY_NODE: Final = _Mode("arbitrary-node")
_SERVICE_ACCOUNT: Final = _Mode("serviceaccount")
_USER_INFO: Final = _Mode("user-info")
_MODES: Final = (_ASSOCIATED_NODE, _ARBITRARY_NODE, _SERVICE_ACCOUNT, _USER_INFO, _Mode(""))


def node_name(username: str) -> str:
    """The node that a user is; empty where it is none."""
    name = username.removeprefix(_NODE_PREFIX)
    is_node = name != username and not metadata.dns_subdomain(name, is_prefix=False)
    return name if is_node else ""


def account_name(username: str) -> tuple[str, str] | None:
    """The namespace and the name of the service account that a user is; None where it is none."""
    namespace, _, name = username.removeprefix(accounts.PREFIX).partition(":")
    if not username.startswith(accounts.PREFIX) or names.dns1123_label(namespace):
        return None
    return None if metadata.dns_subdomain(name, is_prefix=False) else (namespace, name)


def _is_on(requestor: User, node: str) -> bool:
    return account_name(requestor.name) is not None and requestor.extra.get(f"{accounts.EXTRA}node-name") == (node,)


def _completed(user: User) -> User:
    """With the group that everybody, or nobody in particular, is in."""
    if user.name == authentication.ANONYMOUS.name:
        group = authentication.UNAUTHENTICATED
    elif authentication.UNAUTHENTICATED in user.groups:
        return user
    else:
        group = authentication.AUTHENTICATED
    return user if group in user.groups else msgspec.structs.replace(user, groups=(*user.groups, group))


def _extra_problem(extra: Mapping[str, tuple[str, ...]]) -> str:
    """What is wrong with extra keys and values in all modes but the old one."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        problem = _key_problem(key)
        if problem:
            return f"impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {problem}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quotation.quote(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _key_problem(key: str) -> str:
    domain, _, path = key.partition("/")
    if not domain or not path:
        return f'{quotation.quote(key)}: must be a domain-prefixed path (such as "acme.io/foo")'
    for problem in names.dns1123_subdomain(domain):
        return f"{quotation.quote(domain)}: {problem}"
    if not _PATH.fullmatch(path):
        return f"{quotation.quote(path)}: Invalid path (regex used for validation is '{_PATH.pattern}')"
    return ""


def _shown(uid: str, groups: list[str], extra: dict[str, list[str]]) -> str:
    """A user without a name, as Go prints it."""

    def texts(values: list[str]) -> str:
        return f"[]string{{{', '.join(map(quotation.quote, values))}}}"

    shown_groups = texts(groups) if groups else "[]string(nil)"
    entries = ", ".join(f"{quotation.quote(key)}:{texts(extra[key])}" for key in sorted(extra))
    shown_extra = f"map[string][]string{{{entries}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quotation.quote(uid)}, Groups:{shown_groups}, Extra:{shown_extra}}}'
