"""Queueing's configuration from a file: active at once, and published for ``drachma explain workload``."""

import asyncio
import pathlib

import pytest

from drachma.api import configmap
from drachma.process import configurationfile, embedded
from drachma.queueing.component import ActiveConfiguration, configurationmap
from drachma.queueing.configuration import configuration
from drachma.server.wire import app
from drachma.store import memory
from drachma.testing import manualclock

TEXT = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources:
  deviceClassMappings:
  - {name: NAME, deviceClassNames: [gpu.example.com]}
"""


async def test_a_file_is_published_and_published_again_when_it_changes(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "configuration.yaml"
    path.write_text(TEXT.replace("NAME", "gpus"))
    active = ActiveConfiguration()
    configurationfile.load(path, active)
    clock = manualclock.ManualClock()
    additions = app.Additions(namespaces=(configuration.DEFAULT_NAMESPACE,))
    async with embedded.server(memory.MemoryStore(), additions=additions) as server:
        following = asyncio.create_task(configurationfile.follow(path, active, server.client, time=clock))

        async def published() -> str:
            config_map = await server.client.get(
                configmap.ConfigMap, configurationmap.PUBLISHED, namespace=configuration.DEFAULT_NAMESPACE
            )
            return config_map.data[configurationmap.FIELDS[0]]

        await clock.advance(3)
        assert "name: gpus" in await published()
        path.write_text(TEXT.replace("NAME", "accelerators"))
        await clock.advance(3)
        assert "name: accelerators" in await published()
        path.write_text("not a configuration")
        await clock.advance(3)
        assert "name: accelerators" in await published(), "a refused file is not published"
        following.cancel()


async def test_a_problem_of_publishing_is_logged_once(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "configuration.yaml"
    path.write_text(TEXT.replace("NAME", "gpus"))
    active = ActiveConfiguration()
    configurationfile.load(path, active)
    clock = manualclock.ManualClock()
    async with embedded.server(memory.MemoryStore()) as server:
        following = asyncio.create_task(configurationfile.follow(path, active, server.client, time=clock))
        for _ in range(5):
            await clock.advance(3)
        following.cancel()
    assert len([each for each in caplog.messages if "not published in a ConfigMap" in each]) == 1
