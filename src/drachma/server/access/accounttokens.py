"""Tokens of service accounts: signed JWTs with audiences, an expiry and a bound object.

:class:`AccountTokens` issues and verifies them. A token is valid if its signature, time and audience are, and if the
account and the bound object still are those that it was issued for. Verified signatures are cached. Everything else is
checked each time, so that no token outlives its object. (Upstream caches verdicts for ten seconds.) Tokens in secrets
are in :mod:`drachma.server.access.secrettokens`.
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
"""Default issuer of tokens."""

_LEEWAY: Final = timedelta(minutes=1)
_TOKEN_FACTOR: Final = 4
"""Bytes in memory for a character of a cached token and its claims."""

_ENCODED: Final = re.compile(r"[A-Za-z0-9_-]*")
_BAD_SIGNATURE: Final = "go-jose/go-jose: error in cryptographic primitive"
_INVALIDATED: Final = "service account token has been invalidated"


class Binding(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Claims about the account and the bound object; the token of a pod may also name the pod's node."""

    namespace: str = ""
    serviceaccount: Reference = Reference()
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None
    warnafter: int | None = None


class _Claims(secrettokens.Claims, frozen=True, kw_only=True):
    """All claims of a token. Times are floats, because other signers write any number."""

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
    """User of a valid token, and the requested audiences that it is for."""

    user: User
    audiences: tuple[str, ...]


class Signer:
    """Signs claims with a key."""

    def __init__(self, keys: signingkeys.Keys) -> None:
        self._private = keys.private
        self._public = keys.signer

    def encoded_key(self) -> bytes:
        """Return the private key as PEM, for another process of this program."""
        return signingkeys.encode_private(self._private)

    def sign(self, claims: Mapping[str, Any]) -> str:
        """Return a token with these claims."""
        algorithm = self._public.algorithm
        return jwt.PyJWS(algorithms=[algorithm]).encode(
            msgspec.json.encode(claims), self._private, algorithm=algorithm, headers={"kid": self._public.id}
        )

    def issue_for_secret(self, namespace: str, holder: Reference, *, secret: str) -> str:
        """Return a token for a secret to hold."""
        return self.sign(secrettokens.claims(namespace, holder, secret=secret))


class AccountTokens:
    """Issues and verifies the tokens of one server. The first of ``issuers`` is named in new tokens."""

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

    # Issuing

    def issue(self, binding: Binding, *, audiences: Sequence[str], seconds: int, token_id: str) -> str:
        """Return a token for an account, valid for some seconds from now."""
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

    # Verifying

    def identify(self, token: str, audiences: Sequence[str] = ()) -> Identity | None:
        """Return the identity of a token; None if another issuer made it. Audiences default to the server's own.

        Raises:
            RefusedTokenError: the token names this issuer and is not valid.
        """
        verified = self._read_claims(token)
        if verified is None:
            return None
        claims, user = verified
        requested = tuple(audiences) or self.audiences
        token_audiences = tuple(claims.audiences) or self.audiences
        matching = tuple(each for each in token_audiences if each in requested)
        if not matching:
            granted, target = _format_list(token_audiences), _format_list(requested)
            raise RefusedTokenError(f"token audiences {granted} is invalid for the target audiences {target}")
        if claims.iss == secrettokens.ISSUER:
            secrettokens.check(self._store, claims, token=token)
        else:
            self._check(claims)
        return Identity(user, matching)

    def _read_claims(self, token: str) -> "_Verified | None":
        """Return the claims of a token with a trusted signature; None if it names another issuer."""
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
        """Raise a RefusedTokenError if the token is outside its time, or its account or bound object is gone."""
        now, binding = self._clock(), claims.binding
        _check_times(claims, now)
        namespace, holder = binding.namespace, binding.serviceaccount
        _check_unchanged(
            account(self._store, namespace, holder.name),
            holder,
            now,
            missing_message=f"service account {namespace}/{holder.name} has been deleted",
            changed_message="service account UID ({}) does not match claim ({})",
        )
        if binding.secret is not None:
            self._check_bound("secret", namespace, binding.secret, now=now)
        if binding.pod is not None:
            self._check_bound("pod", namespace, binding.pod, now=now)
        elif binding.node is not None:
            self._check_bound("node", "", binding.node, now=now)

    def _check_bound(self, kind: str, namespace: str, reference: Reference, *, now: datetime) -> None:
        """Raise a RefusedTokenError if the bound object is gone, being deleted, or another one of its name."""
        existing = self._store.get(record.Key(f"{kind}s", namespace, reference.name))
        if existing is None:
            raise RefusedTokenError(_INVALIDATED)
        differs = f"{kind} UID ({{}}) does not match service account {kind} ref claim ({{}})"
        _check_unchanged(existing, reference, now, missing_message=_INVALIDATED, changed_message=differs)


class _Verified(NamedTuple):
    """Claims with a trusted signature, and the user that they describe."""

    claims: _Claims
    user: User


def _user(claims: _Claims) -> User:
    """Return the user of a token."""
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
    """Unverified head of a token: its issuer and the id of its key."""

    issuer: str
    key_id: str


class _Header(msgspec.Struct, frozen=True):
    kid: str = ""


def _read(token: str) -> _Envelope | None:
    """Return the envelope of a token; None for a text that is not a JWT."""
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


def _check_unchanged(
    existing: record.Record, reference: Reference, now: datetime, *, missing_message: str, changed_message: str
) -> None:
    metadata = existing.value["metadata"]
    if metadata["uid"] != reference.uid:
        raise RefusedTokenError(changed_message.format(metadata["uid"], reference.uid))
    end = metadata.get("deletionTimestamp")
    if end is not None and datetime.fromisoformat(end) < now - _LEEWAY:
        raise RefusedTokenError(missing_message)


def _check_times(claims: _Claims, now: datetime) -> None:
    moment, leeway = now.timestamp(), _LEEWAY.total_seconds()
    if claims.nbf is not None and moment + leeway < claims.nbf:
        raise RefusedTokenError("service account token is not valid yet")
    if claims.exp is not None and moment - leeway > claims.exp:
        raise RefusedTokenError("service account token has expired")
    if claims.iat is not None and moment + leeway < claims.iat:
        raise RefusedTokenError("service account token is issued in the future")


def _format_list(values: Sequence[str]) -> str:
    return f"[{' '.join(map(quotation.quote, values))}]"
