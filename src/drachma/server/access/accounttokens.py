"""Tokens of service accounts: signed JWTs that say for whom they are, until when, and which object they end with.

:class:`AccountTokens` makes them and looks at them. A token is good while its signature is, its time has come and not
passed, its audience is ours, and the account and whatever it is bound to still are the ones that it was made for.
Signatures are remembered; all the rest is looked at each time, so that nothing outlives what it is bound to. (Upstream
remembers verdicts for ten seconds.) Tokens that secrets hold are in :mod:`drachma.server.access.secrettokens`.
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import jwt
import msgspec

from drachma.bounds import memory
from drachma.server.access import secrettokens, signingkeys
from drachma.server.access.accounts import Reference, RefusedTokenError, Store, account, account_user, username
from drachma.server.user import User
from drachma.store import record
from drachma.values import quotation

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
"""Who issues tokens unless somebody else is named."""

_LEEWAY: Final = timedelta(minutes=1)
_TOKEN_FACTOR: Final = 4
"""Bytes of a token with all that it says, for each of its characters."""

_ENCODED: Final = re.compile(r"[A-Za-z0-9_-]*")
_BAD_SIGNATURE: Final = "go-jose/go-jose: error in cryptographic primitive"
_INVALIDATED: Final = "service account token has been invalidated"


class Binding(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a token says of its account and of the object that it ends with; a pod's may also name the pod's node."""

    namespace: str = ""
    serviceaccount: Reference = Reference()
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None
    warnafter: int | None = None


class _Claims(secrettokens.Claims, frozen=True, kw_only=True):
    """What a token claims; times are whatever number a foreign signer writes."""

    aud: str | tuple[str, ...] = ()
    exp: float | None = None
    nbf: float | None = None
    iat: float | None = None
    jti: str = ""
    binding: Binding = msgspec.field(name="kubernetes.io", default=Binding())

    @property
    def audiences(self) -> Sequence[str]:
        return self.aud if isinstance(self.aud, tuple) else tuple(filter(None, [self.aud]))


class Identity(NamedTuple):
    """Who a good token stands for, and for which of the audiences that were asked for."""

    user: User
    audiences: tuple[str, ...]


class Signer:
    """Signs claims with a key."""

    def __init__(self, keys: signingkeys.Keys) -> None:
        self._private = keys.private
        self._public = keys.signer

    def sign(self, claims: Mapping[str, Any]) -> str:
        """Claims as a token."""
        algorithm = self._public.algorithm
        return jwt.PyJWS(algorithms=[algorithm]).encode(
            msgspec.json.encode(claims), self._private, algorithm=algorithm, headers={"kid": self._public.id}
        )

    def issue_for_secret(self, namespace: str, holder: Reference, *, secret: str) -> str:
        """A token of an account for a secret to hold."""
        return self.sign(secrettokens.claims(namespace, holder, secret=secret))


class AccountTokens:
    """Makes and verifies the tokens of one server. ``issuers`` has the one that signs first."""

    def __init__(
        self,
        store: Store,
        keys: signingkeys.Keys,
        *,
        clock: Callable[[], datetime],
        issuers: Sequence[str] = (ISSUER,),
        audiences: Sequence[str] = (),
    ) -> None:
        self.keys: Final = keys
        self.signer: Final = Signer(keys)
        self.issuers: Final = tuple(issuers)
        self.audiences: Final = tuple(audiences) or self.issuers
        self._store = store
        self._clock = clock
        # Verifying a signature takes some tens of microseconds.
        self._signed: Final = memory.Cache[str, _Verified]("tokens")
        self._jws = jwt.PyJWS(algorithms=sorted({key.algorithm for key in keys.trusted}))

    # Making them

    def issue(self, binding: Binding, *, audiences: Sequence[str], seconds: int, token_id: str) -> str:
        """A token for an account, good from now on for some seconds."""
        now = int(self._clock().timestamp())
        return self.signer.sign(
            {
                "aud": list(audiences),
                "exp": now + seconds,
                "iat": now,
                "iss": self.issuers[0],
                "jti": token_id,
                "kubernetes.io": binding,
                "nbf": now,
                "sub": username(binding.namespace, binding.serviceaccount.name),
            }
        )

    # Looking at them

    def identify(self, token: str, audiences: Sequence[str] = ()) -> Identity | None:
        """Who a token stands for; None if it is not one of ours. The audiences are our own unless others are given.

        Raises:
            RefusedTokenError: it says that it is ours, and is no good.
        """
        verified = self._verified(token)
        if verified is None:
            return None
        claims, user = verified
        requested = tuple(audiences) or self.audiences
        meant = tuple(claims.audiences) or self.audiences
        agreed = tuple(each for each in meant if each in requested)
        if not agreed:
            raise RefusedTokenError(
                f"token audiences {_listed(meant)} is invalid for the target audiences {_listed(requested)}"
            )
        if claims.iss == secrettokens.ISSUER:
            secrettokens.check(self._store, claims, token=token)
        else:
            self._check(claims)
        return Identity(user, agreed)

    def _verified(self, token: str) -> "_Verified | None":
        """What a token that somebody trusted has signed says; None if it does not say that it is ours."""
        verified = self._signed.get(token)
        if verified is None:
            envelope = _read(token)
            if envelope is None or envelope.issuer not in (*self.issuers, secrettokens.ISSUER):
                return None
            claims = self._verify(token, envelope.key_id)
            verified = _Verified(claims, _user(claims))
            self._signed.put(token, verified, size=_TOKEN_FACTOR * len(token))
        return verified

    def _verify(self, token: str, key_id: str) -> _Claims:
        keys = self.keys.trusted if not key_id else [key for key in self.keys.trusted if key.id == key_id]
        if not keys:
            raise RefusedTokenError("invalid signature, no keys found")
        for key in keys:
            try:
                payload = self._jws.decode(token, key.key, algorithms=[key.algorithm])
                return msgspec.json.decode(payload, type=_Claims)
            except jwt.InvalidTokenError:
                continue
            except msgspec.MsgspecError as error:
                raise RefusedTokenError(str(error)) from None
        raise RefusedTokenError(_BAD_SIGNATURE)

    def _check(self, claims: _Claims) -> None:
        """Refuses a token whose time is not now, or that has lost its account or what it is bound to."""
        now, binding = self._clock(), claims.binding
        _check_times(claims, now)
        namespace, holder = binding.namespace, binding.serviceaccount
        _check_same(
            account(self._store, namespace, holder.name),
            holder,
            now,
            gone=f"service account {namespace}/{holder.name} has been deleted",
            differs="service account UID ({}) does not match claim ({})",
        )
        if binding.secret is not None:
            self._check_bound("secret", namespace, binding.secret, now=now)
        if binding.pod is not None:
            self._check_bound("pod", namespace, binding.pod, now=now)
        elif binding.node is not None:
            self._check_bound("node", "", binding.node, now=now)

    def _check_bound(self, kind: str, namespace: str, reference: Reference, *, now: datetime) -> None:
        """Refuses a token that is bound to an object that has gone, goes away, or has been made anew."""
        stored = self._store.get(record.Key(f"{kind}s", namespace, reference.name))
        if stored is None:
            raise RefusedTokenError(_INVALIDATED)
        differs = f"{kind} UID ({{}}) does not match service account {kind} ref claim ({{}})"
        _check_same(stored, reference, now, gone=_INVALIDATED, differs=differs)


class _Verified(NamedTuple):
    """What a good signature vouches for, and the user that it is about, if everything else is good, too."""

    claims: _Claims
    user: User


def _user(claims: _Claims) -> User:
    """The user that a token is about."""
    if claims.iss == secrettokens.ISSUER:
        return secrettokens.user(claims)
    binding = claims.binding
    extra = {"credential-id": f"JTI={claims.jti}"} if claims.jti else {}
    if binding.pod is not None:
        extra |= {"pod-name": binding.pod.name, "pod-uid": binding.pod.uid}
    if binding.node is not None:
        extra |= {"node-name": binding.node.name, "node-uid": binding.node.uid}
    return account_user(binding.namespace, binding.serviceaccount, extra)


class _Envelope(NamedTuple):
    """What a token says of itself, without proof: who issued it, and which key it is signed with."""

    issuer: str
    key_id: str


class _Header(msgspec.Struct, frozen=True):
    kid: str = ""


def _read(token: str) -> _Envelope | None:
    """The envelope of what looks like a token; None for what does not."""
    parts = token.split(".")
    if len(parts) != 3 or not all(_ENCODED.fullmatch(part) and len(part) % 4 != 1 for part in parts):
        return None
    header, payload = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts[:2])
    try:
        return _Envelope(
            msgspec.json.decode(payload, type=secrettokens.Claims).iss, msgspec.json.decode(header, type=_Header).kid
        )
    except msgspec.MsgspecError:
        return None


def _check_same(stored: record.Record, reference: Reference, now: datetime, *, gone: str, differs: str) -> None:
    metadata = stored.value["metadata"]
    if metadata["uid"] != reference.uid:
        raise RefusedTokenError(differs.format(metadata["uid"], reference.uid))
    end = metadata.get("deletionTimestamp")
    if end is not None and datetime.fromisoformat(end) < now - _LEEWAY:
        raise RefusedTokenError(gone)


def _check_times(claims: _Claims, now: datetime) -> None:
    moment, leeway = now.timestamp(), _LEEWAY.total_seconds()
    if claims.nbf is not None and moment + leeway < claims.nbf:
        raise RefusedTokenError("service account token is not valid yet")
    if claims.exp is not None and moment - leeway > claims.exp:
        raise RefusedTokenError("service account token has expired")
    if claims.iat is not None and moment + leeway < claims.iat:
        raise RefusedTokenError("service account token is issued in the future")


def _listed(values: Sequence[str]) -> str:
    return f"[{' '.join(map(quotation.quote, values))}]"
