"""Accounts and authorities that every namespace has, and tokens in secrets."""

import base64

import pytest
from msgspec import structs

from drachma import errors
from drachma.api import configmap, meta, namespace, secret, serviceaccount
from drachma.controllers import serviceaccount as controllers
from drachma.runtime import Credentials, Surroundings, controller
from tests.unit.controllers import worlds

AUTHORITY = "-----BEGIN CERTIFICATE-----"


def a_namespace(name: str = "n") -> namespace.Namespace:
    return namespace.Namespace(metadata=meta.ObjectMeta(name=name))


def mint(namespace: str, name: str, *, uid: str, secret: str) -> str:
    return f"token of {namespace}/{name} {uid} in {secret}"


def with_credentials(make: worlds.Make) -> worlds.Make:
    def made(surroundings: Surroundings) -> controller.Controller:
        return make(
            Surroundings(
                surroundings.client,
                shared_informers=surroundings.informers,
                clock=surroundings.clock,
                credentials=Credentials(AUTHORITY, mint),
            )
        )

    return made


async def accounts(world: worlds.World) -> list[str]:
    return sorted(each.metadata.namespace for each in await world.all_of(serviceaccount.ServiceAccount))


async def test_every_namespace_has_the_default_account_and_gets_it_again() -> None:
    async with worlds.world(controllers.ServiceAccountController) as world:
        await world.create(a_namespace())
        await world.settle()
        assert await accounts(world) == ["default", "kube-node-lease", "kube-public", "kube-system", "n"]
        (own,) = (each for each in await world.all_of(serviceaccount.ServiceAccount) if each.metadata.namespace == "n")
        await world.delete(own)
        await world.settle()
        again = await world.get(own)
        assert again.metadata.uid != own.metadata.uid


async def test_a_namespace_that_goes_away_gets_none() -> None:
    async with worlds.world(controllers.ServiceAccountController) as world:
        created_namespace = await world.create(a_namespace())
        await world.settle()
        await world.delete(created_namespace)
        (own,) = (each for each in await world.all_of(serviceaccount.ServiceAccount) if each.metadata.namespace == "n")
        await world.delete(own)
        await world.settle()
        assert "n" not in await accounts(world)


async def test_every_namespace_knows_the_authority_whatever_is_done_to_it() -> None:
    async with worlds.world(with_credentials(controllers.RootCertificatePublisher)) as world:
        await world.create(a_namespace())
        await world.settle()
        (own,) = (each for each in await world.all_of(configmap.ConfigMap) if each.metadata.namespace == "n")
        assert (own.metadata.name, dict(own.data)) == ("kube-root-ca.crt", {"ca.crt": AUTHORITY})
        await world.patch(own, {"data": {"ca.crt": "mine", "more": "of it"}})
        await world.settle()
        assert dict((await world.get(own)).data) == {"ca.crt": AUTHORITY}
        await world.delete(own)
        await world.settle()
        assert dict((await world.get(own)).data) == {"ca.crt": AUTHORITY}


def a_secret(account: str, **more: str) -> secret.Secret:
    annotations = {"kubernetes.io/service-account.name": account, **more}
    return secret.Secret(
        metadata=meta.ObjectMeta(name="s", namespace="default", annotations=annotations),
        type="kubernetes.io/service-account-token",
    )


def an_account() -> serviceaccount.ServiceAccount:
    return serviceaccount.ServiceAccount(metadata=meta.ObjectMeta(name="app", namespace="default"))


async def test_a_secret_is_filled_with_a_token_and_goes_with_its_account() -> None:
    async with worlds.world(with_credentials(controllers.TokenController)) as world:
        account = await world.create(an_account())
        created_secret = await world.create(a_secret("app"))
        await world.settle()
        filled = await world.get(created_secret)
        assert {key: base64.b64decode(text).decode() for key, text in filled.data.items()} == {
            "ca.crt": AUTHORITY,
            "namespace": "default",
            "token": f"token of default/app {account.metadata.uid} in s",
        }
        assert filled.metadata.annotations["kubernetes.io/service-account.uid"] == account.metadata.uid
        await world.delete(account)
        await world.settle()
        with pytest.raises(errors.ObjectNotFoundError):
            await world.get(created_secret)


async def test_a_token_stays_as_it_is() -> None:
    async with worlds.world(with_credentials(controllers.TokenController)) as world:
        await world.create(an_account())
        created_secret = await world.create(
            structs.replace(a_secret("app"), data={"token": base64.b64encode(b"mine").decode()})
        )
        await world.settle()
        assert base64.b64decode((await world.get(created_secret)).data["token"]) == b"mine"


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(a_secret("ghost"), id="no-such-account"),
        pytest.param(a_secret("app", **{"kubernetes.io/service-account.uid": "old"}), id="account-made-anew"),
    ],
)
async def test_a_secret_for_nobody_goes(made: secret.Secret) -> None:
    async with worlds.world(with_credentials(controllers.TokenController)) as world:
        await world.create(an_account())
        created = await world.create(made)
        await world.settle()
        with pytest.raises(errors.ObjectNotFoundError):
            await world.get(created)


async def test_other_secrets_are_left_alone() -> None:
    async with worlds.world(with_credentials(controllers.TokenController)) as world:
        created_secret = await world.create(structs.replace(a_secret("ghost"), type="Opaque"))
        await world.settle()
        assert (await world.get(created_secret)).metadata.uid == created_secret.metadata.uid
