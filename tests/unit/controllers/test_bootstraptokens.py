"""Bootstrap tokens whose time is over."""

import base64
import datetime as dt

from drachma.api import meta, secret
from drachma.controllers import bootstraptokens
from tests.unit.controllers import worlds


def holder(name: str, *, end: dt.datetime | None, kind: str = "bootstrap.kubernetes.io/token") -> secret.Secret:
    data = {"expiration": base64.b64encode(end.isoformat().encode()).decode()} if end is not None else {}
    return secret.Secret(metadata=meta.ObjectMeta(name=name, namespace="kube-system"), type=kind, data=data)


async def test_they_go_when_their_time_comes() -> None:
    async with worlds.world(bootstraptokens.TokenCleaner) as world:
        end = world.clock.utc() + dt.timedelta(hours=1)
        mortal = await world.create(holder("bootstrap-token-mortal", end=end))
        for_ever = await world.create(holder("bootstrap-token-always", end=None))
        other = await world.create(holder("other", end=end, kind="Opaque"))
        await world.advance(3599.0)
        assert await world.exists(mortal)
        await world.advance(2.0)
        assert [await world.exists(each) for each in (mortal, for_ever, other)] == [False, True, True]
