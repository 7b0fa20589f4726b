"""Thousands of random requests in process: no 500, no hang, and every refusal says why."""

import asyncio
import itertools

import pytest

from tests.scenarios import fuzzing
from tests.unit.server import client


@pytest.mark.parametrize("seed", range(4))
async def test_no_request_gets_a_500(seed: int) -> None:
    server = await client.start()
    for request in itertools.islice(fuzzing.requests(seed), 1500):
        if "watch" in request.path:
            continue
        async with asyncio.timeout(60):
            answer = await server.raw(
                request.method,
                request.path,
                request.body,
                content_type=request.content_type,
                headers={"accept": request.accept},
            )
        fuzzing.check(request, answer.code, answer.data)
