"""Impersonation: a user acts as another user, if allowed (KEP-5284).

A client names the other user in headers. There are several modes with permissions of their own, which are tried in
turn: a service account acts as the node it runs on, a user acts as any node, as a service account, or as any other
user. Each of these is limited to the verb of the request (``impersonate-on:MODE:VERB``). The legacy mode comes last and
covers everything. The mode that was last allowed to a user is tried first. A refusal has the message of the first
mode tried.
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
"""Prefix of the headers; ASGI writes header names in lower case."""

MASTERS: Final = "system:masters"

_EXTRA: Final = b"impersonate-extra-"
_GROUP: Final = "authentication.k8s.io"
_NODE_PREFIX: Final = "system:node:"
_NODES: Final = "system:nodes"
_NODE_KEYS: Final = f"{accounts.EXTRA}associated-node-keys"
_MANY: Final = 4
"""Number of groups or extra values from which on permission for all of them is asked first."""

_REMEMBERED: Final = 10_000
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def requested_user(headers: Iterable[tuple[bytes, bytes]]) -> User | None:
    """Return the user that the headers name, without groups that the server adds; None if they name none.

    Raises:
        status.StatusError: headers describe a user whose name is missing.
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
        fields = _format_user(uid, groups, extra)
        raise status.bad_request(f"requested {fields} without impersonating a user name")
    return None


class Impersonated(NamedTuple):
    """Impersonated user, and the permission for it; the legacy mode has no name."""

    user: User
    constraint: str


class Impersonation:
    """Decides about impersonation, and caches the last allowed mode of each user."""

    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser
        self._last: dict[str, _Mode] = {}

    def become(self, target: User, attributes: Attributes) -> "Impersonated":
        """Return the user that the requester becomes for a request with these attributes.

        Raises:
            status.StatusError: the impersonation is not allowed; the message names the missing permission.
        """
        name = attributes.user.name
        last = self._last.get(name)
        first: status.StatusError | None = None
        for mode in sorted(_MODES, key=lambda each: each is not last):
            if not mode.applies(target, attributes.user):
                continue
            try:
                changed = self._impersonate(mode, target, attributes)
            except status.StatusError as error:
                first = first or error
                continue
            if len(self._last) >= _REMEMBERED:
                self._last.clear()
            self._last[name] = mode
            return Impersonated(changed, f"impersonate:{mode.constraint}" if mode.constraint else "")
        assert first is not None, "the legacy mode applies to every user"
        raise first

    def _impersonate(self, mode: "_Mode", target: User, attributes: Attributes) -> User:
        user = mode.requestor(attributes.user)
        if mode.constraint:
            verb = f"impersonate-on:{mode.constraint}:{attributes.verb}"
            self._require(msgspec.structs.replace(attributes, user=user, verb=verb))
        groups = self._check_name(mode, target, user)
        if target.uid:
            self._require(mode.attributes(user, "uids", target.uid, group=_GROUP))
        self._check_groups(mode, target, user)
        self._check_extra(mode, target, user)
        return _add_group(msgspec.structs.replace(target, groups=groups))

    def _check_name(self, mode: "_Mode", target: User, user: User) -> tuple[str, ...]:
        """Refuse a name that is not allowed; return the requested groups, or those that come with the name."""
        node, account = node_name(target.name), account_name(target.name)
        if mode.constraint and node:
            name = "*" if mode is _ASSOCIATED_NODE else node
            self._require(mode.attributes(user, "nodes", name))
            return (_NODES,)
        if account is not None:
            namespace, name = account
            self._require(mode.attributes(user, "serviceaccounts", name, namespace=namespace))
            return target.groups or accounts.groups(namespace)
        self._require(mode.attributes(user, "users", target.name))
        return target.groups

    def _check_groups(self, mode: "_Mode", target: User, user: User) -> None:
        if mode.constraint:
            if "" in target.groups:
                detail = "impersonating the empty string group is not allowed"
                raise authorization.forbidden(mode.attributes(user, "groups", ""), detail)
            if MASTERS in target.groups:
                detail = "impersonating the system:masters group is not allowed"
                raise authorization.forbidden(mode.attributes(user, "groups", MASTERS), detail)
            if len(target.groups) >= _MANY and self._allows(mode.attributes(user, "groups", "*")):
                return
        for group in target.groups:
            self._require(mode.attributes(user, "groups", group))

    def _check_extra(self, mode: "_Mode", target: User, user: User) -> None:
        if mode.constraint:
            problem = _extra_problem(target.extra)
            if problem:
                raise authorization.forbidden(mode.attributes(user, "userextras", "", group=_GROUP), problem)
            is_large = len(target.extra) >= _MANY or sum(map(len, target.extra.values())) >= _MANY
            everything = mode.attributes(user, "userextras", "*", group=_GROUP, subresource="*")
            if is_large and self._allows(everything):
                return
        for key, values in target.extra.items():
            for value in values:
                self._require(mode.attributes(user, "userextras", value, group=_GROUP, subresource=key))

    def _allows(self, attributes: Attributes) -> bool:
        return self._authoriser.authorise(attributes).is_allowed

    def _require(self, attributes: Attributes) -> None:
        authorization.require(self._authoriser, attributes)


class _Mode(NamedTuple):
    """One mode of impersonation; ``constraint`` is its name in verbs, and empty for the legacy mode."""

    constraint: str

    def applies(self, target: User, requestor: User) -> bool:
        """Return True if the mode can be used to become such a user."""
        if not self.constraint:
            return True
        node, account = node_name(target.name), account_name(target.name)
        if self is _USER_INFO:
            return not node and account is None
        if target.uid or target.groups or target.extra:
            return False
        if self is _SERVICE_ACCOUNT:
            return account is not None
        return bool(node) and (self is _ARBITRARY_NODE or _is_on(requestor, node))

    def requestor(self, user: User) -> User:
        """Return the requester as authorisers see it.

        For the node that an account runs on, all its accounts are alike.
        """
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
        """Return the question about a permission; in the legacy mode users and groups are in the core group."""
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
    """Return the name of the node that a user is; empty for other users."""
    name = username.removeprefix(_NODE_PREFIX)
    is_node = name != username and not metadata.dns_subdomain(name, is_prefix=False)
    return name if is_node else ""


def account_name(username: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account that a user is; None for other users."""
    namespace, _, name = username.removeprefix(accounts.PREFIX).partition(":")
    if not username.startswith(accounts.PREFIX) or names.dns1123_label(namespace):
        return None
    return None if metadata.dns_subdomain(name, is_prefix=False) else (namespace, name)


def _is_on(requestor: User, node: str) -> bool:
    return account_name(requestor.name) is not None and requestor.extra.get(f"{accounts.EXTRA}node-name") == (node,)


def _add_group(user: User) -> User:
    """Return a user with the group of authenticated or unauthenticated users."""
    if user.name == authentication.ANONYMOUS.name:
        group = authentication.UNAUTHENTICATED
    elif authentication.UNAUTHENTICATED in user.groups:
        return user
    else:
        group = authentication.AUTHENTICATED
    return user if group in user.groups else msgspec.structs.replace(user, groups=(*user.groups, group))


def _extra_problem(extra: Mapping[str, tuple[str, ...]]) -> str:
    """Return the problem with extra keys and values in all modes but the legacy one."""
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


def _format_user(uid: str, groups: list[str], extra: dict[str, list[str]]) -> str:
    """Return a user without a name in Go's notation."""

    def texts(values: list[str]) -> str:
        return f"[]string{{{', '.join(map(quotation.quote, values))}}}"

    shown_groups = texts(groups) if groups else "[]string(nil)"
    entries = ", ".join(f"{quotation.quote(key)}:{texts(extra[key])}" for key in sorted(extra))
    shown_extra = f"map[string][]string{{{entries}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quotation.quote(uid)}, Groups:{shown_groups}, Extra:{shown_extra}}}'
