"""OpenID discovery: others can verify tokens with nothing but what is served."""

import jwt

from tests.unit.server.client import Client

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


async def test_others_can_verify_tokens(server: Client) -> None:
    await server.call("POST", ACCOUNTS, {"metadata": {"name": "app"}})
    token = (await server.call("POST", f"{ACCOUNTS}/app/token", {})).body["status"]["token"]
    configuration = await server.call("GET", "/.well-known/openid-configuration")
    assert configuration.header("cache-control") == "public, max-age=3600"
    found = configuration.body
    keys = await server.call("GET", "/openid/v1/jwks")
    assert keys.header("content-type") == "application/jwk-set+json"
    key_id = jwt.get_unverified_header(token)["kid"]
    (key,) = (each for each in jwt.PyJWKSet.from_dict(keys.body).keys if each.key_id == key_id)
    claims = jwt.decode(
        token,
        key,
        algorithms=found["id_token_signing_alg_values_supported"],
        issuer=found["issuer"],
        audience=found["issuer"],
        options={"verify_exp": False, "verify_nbf": False, "verify_iat": False},
    )
    assert claims["sub"] == "system:serviceaccount:default:app"
