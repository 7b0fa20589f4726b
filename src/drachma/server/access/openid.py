"""What others need to verify service account tokens themselves: the documents of OpenID discovery."""

from typing import Any, Final

from drachma.server.access.accounttokens import AccountTokens

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
KEYS_PATH: Final = "/openid/v1/jwks"


def is_served(tokens: AccountTokens) -> bool:
    """Whether the issuer is one that others can find out about: OpenID wants an address with https."""
    issuer = tokens.issuers[0]
    return issuer.startswith("https://") and not any(mark in issuer for mark in "?#")


def configuration(tokens: AccountTokens, *, server_address: str) -> dict[str, Any]:
    """Who issues tokens, and where its keys are."""
    return {
        "issuer": tokens.issuers[0],
        "jwks_uri": f"https://{server_address}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({key.algorithm for key in tokens.keys.trusted}),
    }


def keys(tokens: AccountTokens) -> dict[str, Any]:
    """The keys that tokens are verified with."""
    return {"keys": [key.document() for key in tokens.keys.trusted]}
