"""Counters in the real Redis that hubs share, and without it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time

import pytest

from memoryhub.agents import call_limits
from memoryhub.agents.call_limits import TooManyCalls, spend
from tests.hub import NOW

redis = pytest.importorskip("redis")
from memoryhub.lib.redis_counters import RedisCounters  # noqa: E402

REDIS = shutil.which("redis-server")
LIMIT = 5


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.fixture
def server(tmp_path):
    """Return a running redis-server and its port."""
    port = free_port()
    command = [str(REDIS), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        client = redis.Redis(port=port)
        for _ in range(200):
            try:
                client.ping()
                break
            except redis.exceptions.ConnectionError:
                time.sleep(0.02)
        yield process, port
        process.kill()


def hub_with(port: int) -> RedisCounters:
    return RedisCounters(f"redis://127.0.0.1:{port}", {})


def accepted(monkeypatch, counters) -> int:
    """Return how many calls a hub with these counters accepts."""
    monkeypatch.setattr(call_limits, "cache", counters)
    for count in range(100):
        try:
            spend("calls:1", LIMIT, NOW)
        except TooManyCalls:
            return count
    raise AssertionError("no limit")


@pytest.mark.skipif(REDIS is None, reason="redis-server isn't installed")
def test_hubs_share_a_limit_and_count_alone_while_redis_is_away(server, monkeypatch):
    process, port = server
    first, second = hub_with(port), hub_with(port)
    second._own.clear()  # tests of a process share it

    assert accepted(monkeypatch, first) == LIMIT
    assert accepted(monkeypatch, second) == 0

    process.kill()
    process.wait()
    assert accepted(monkeypatch, second) == LIMIT


def test_without_redis_a_call_waits_for_it_once(monkeypatch, caplog):
    counters = hub_with(free_port())
    counters._own.clear()

    assert accepted(monkeypatch, counters) == LIMIT
    assert [record.getMessage().split(";")[0] for record in caplog.records] == ["Redis can't be used"]


def test_a_counter_that_is_lost_between_two_steps_is_started_again(monkeypatch):
    class Losing(type(call_limits.cache)):
        losses = 1

        def incr(self, key, delta=1, version=None):
            if self.losses:
                self.losses -= 1
                self.delete(key)
            return super().incr(key, delta, version)

    assert accepted(monkeypatch, Losing("losing", {})) == LIMIT
