"""OpenID discovery, with which other systems verify service account tokens."""

from typing import Any, Final

from drachma.server.access.accounttokens import AccountTokens

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
KEYS_PATH: Final = "/openid/v1/jwks"


def is_served(tokens: AccountTokens) -> bool:
    """Return True if the issuer has an https address, as OpenID requires."""
    issuer = tokens.issuers[0]
    return issuer.startswith("https://") and not any(mark in issuer for mark in "?#")


def configuration(tokens: AccountTokens, *, server_address: str) -> dict[str, Any]:
    """Return the discovery document: the issuer and the address of its keys."""
    return {
        "issuer": tokens.issuers[0],
        "jwks_uri": f"https://{server_address}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({key.algorithm for key in tokens.keys.trusted}),
    }


def keys(tokens: AccountTokens) -> dict[str, Any]:
    """Return the public keys of tokens."""
    return {"keys": [key.document() for key in tokens.keys.trusted]}
