"""The metrics of caches."""

from drachma.bounds import memory
from drachma.server.wire import limitmetrics
from tests.unit.server import client


def test_sizes_by_cache_and_the_limit() -> None:
    room = memory.Memory(memory.LEAST_LIMIT)
    cache = memory.Cache[str, int]("numbers", room)
    cache.put("one", 1, size=1000)
    samples = [
        (sample.name, sample.labels, sample.value)
        for family in limitmetrics.CacheMetrics(room).collect()
        for sample in family.samples
    ]
    assert samples == [
        ("drachma_cache_bytes", {"cache": "numbers"}, 1000 + memory.ENTRY_OVERHEAD),
        ("drachma_cache_limit_bytes", {}, memory.LEAST_LIMIT),
    ]


async def test_the_server_shows_them() -> None:
    server = await client.start()
    cache = memory.Cache[str, int]("numbers")
    answer = await server.raw("GET", "/metrics", b"")
    assert cache.size == 0
    assert b'drachma_cache_bytes{cache="numbers"} 0.0' in answer.data
    assert b"drachma_cache_limit_bytes" in answer.data
