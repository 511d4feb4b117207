# SPDX-License-Identifier: Apache-2.0
"""Clients of Redis and memcached on stores in persistent memory: random work against a dict, power cuts."""

from __future__ import annotations

import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import guest
import pytest
import redis_tools as redis_kit
from nearside import NearsideError
from nearside.kv_server import KvServer

redis = pytest.importorskip("redis", reason="the client `redis` is not installed: make peers")
memcache = pytest.importorskip("pymemcache", reason="the client `pymemcache` is not installed: make peers")

WAYS = [(mechanism, by) for mechanism in ("undo", "redo", "checkpoint", "shadow") for by in ("cpu", "device")]
LENGTH = 16 << 20


class Redis:
    """The operations of a test, by a client of Redis."""

    gone = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)

    def __init__(self, front: KvServer, protocol: int = 3) -> None:
        never = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        self.client = redis.Redis(port=front.port, protocol=protocol, retry=never, socket_timeout=600)

    def get(self, key: bytes) -> bytes | None:
        return self.client.get(key)

    def set(self, key: bytes, value: bytes) -> None:
        assert self.client.set(key, value)

    def delete(self, key: bytes) -> bool:
        return self.client.delete(key) == 1

    def cut(self, ns: int) -> None:
        assert self.client.execute_command("DEBUG", "POWERCUT", ns) == b"OK"


class Memcached:
    """The operations of a test, by a client of memcached."""

    gone = (memcache.exceptions.MemcacheUnexpectedCloseError, ConnectionError, TimeoutError)

    def __init__(self, front: KvServer) -> None:
        self.client = memcache.Client(("127.0.0.1", front.port), timeout=600, default_noreply=False)

    def get(self, key: bytes) -> bytes | None:
        return self.client.get(key)

    def set(self, key: bytes, value: bytes) -> None:
        assert self.client.set(key, value)

    def delete(self, key: bytes) -> bool:
        return self.client.delete(key)

    def cut(self, ns: int) -> None:
        assert self.client.raw_command(b"powercut %d" % ns) == b"OK"


CLIENTS = {"redis": Redis, "memcached": Memcached}


@pytest.mark.parametrize("protocol", CLIENTS)
@pytest.mark.parametrize(("mechanism", "by"), WAYS)
def test_kv_server_acknowledged_writes_survive_power_cuts(protocol: str, mechanism: str, by: str) -> None:
    draw = random.Random(f"{protocol} {mechanism} {by}")
    known: dict[bytes, bytes | None] = {}
    with KvServer(protocol, mechanism=mechanism, by=by, length=LENGTH) as front:
        for _ in range(3):
            client = CLIENTS[protocol](front)
            client.cut(draw.randrange(20_000, 80_000))
            for _ in range(1000):
                key = b"key %d" % draw.randrange(16) if protocol == "redis" else b"key%d" % draw.randrange(16)
                old, new = known.get(key), draw.choice((None, draw.randbytes(draw.randrange(1, 600))))
                try:
                    if draw.random() < 0.3:
                        assert client.get(key) == old
                        continue
                    if new is None:
                        assert client.delete(key) == (old is not None)
                    else:
                        client.set(key, new)
                    known[key] = new
                except client.gone:
                    break
            else:
                pytest.fail("the power has not failed")
            client = CLIENTS[protocol](front)
            # The write in progress is there or not; all others are.
            now = client.get(key)
            assert now in (old, new)
            known[key] = now
            assert {key: client.get(key) for key in known} == known
        report = front.close()
    assert report["power_losses"] == 3
    assert report["writes"]["simulated_mean_ns"] > 0


def test_kv_server_redis_transactions_are_atomic_with_several_clients() -> None:
    with KvServer("redis", length=LENGTH) as front:
        clients = [Redis(front).client for _ in range(4)]

        def work(client: redis.Redis) -> None:
            for _ in range(25):
                with client.pipeline(transaction=True) as pipe:
                    pipe.incr("a").incr("b")
                    one, other = pipe.execute()
                assert one == other

        threads = [threading.Thread(target=work, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert clients[0].mget("a", "b", "c") == [b"100", b"100", None]
        with pytest.raises(redis.exceptions.ResponseError, match="times to live"):
            clients[0].set("a", 1, ex=5)
        clients[0].flushall()
        assert clients[1].dbsize() == 0


@pytest.mark.parametrize("version", [2, 3, None])
def test_kv_server_redis_replies_have_their_types(version: int | None) -> None:
    """A client without options, too: it begins with HELLO 3, and sets its name and version."""
    with KvServer("redis", length=LENGTH) as front:
        chosen = {} if version is None else {"protocol": version}
        client = redis.Redis(port=front.port, decode_responses=True, client_name="me", **chosen)
        assert client.ping() is True
        assert client.get("no") is None
        assert client.set("a", "1") is True
        assert client.set("a", "2", nx=True) is None
        assert client.setnx("b", "2") in (True, 1)
        assert client.mget("a", "no") == ["1", None]
        assert client.mset({"c": "3", "d": "4"}) is True
        assert [client.exists("a", "no"), client.delete("d", "no"), client.dbsize()] == [1, 1, 3]
        assert [client.incr("a"), client.decrby("a", 5), client.append("a", "0"), client.strlen("a")] == [2, -3, 3, 3]
        assert client.client_getname() == "me"
        assert client.client_id() >= 1
        assert client.client_info()["name"] == "me"
        assert client.config_get("time*") == {"timeout": "0"}
        assert client.config_get("nothing") == {}
        assert client.info()["redis_mode"] == "standalone"
        assert client.command_count() == len(client.command_list())
        assert client.command()["get"]["arity"] == 2
        assert client.echo("a\r\nb") == "a\r\nb"
        hello = client.execute_command("HELLO")
        pairs = hello if isinstance(hello, dict) else dict(zip(hello[::2], hello[1::2], strict=True))
        assert pairs["proto"] == (2 if version == 2 else 3)
        with client.pipeline() as pipe:
            assert pipe.set("e", "5").get("e").get("no").execute() == [True, "5", None]
        with pytest.raises(redis.exceptions.ResponseError, match="a value or word has at most 262144 bytes"):
            client.set("big", "x" * (300 << 10))
        assert client.get("c") == "3"
        assert client.flushall() is True
        client.close()


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_kv_server_requires_a_password_from_other_machines() -> None:
    never = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    with KvServer("redis", host="0.0.0.0", password="secret", length=LENGTH) as front:
        with pytest.raises(redis.exceptions.AuthenticationError):
            redis.Redis(port=front.port, retry=never).ping()
        with pytest.raises(redis.exceptions.AuthenticationError):
            redis.Redis(port=front.port, password="wrong", retry=never).ping()
        for version in (2, 3):
            assert redis.Redis(port=front.port, password="secret", protocol=version).ping()
    if has_ipv6():
        with KvServer("memcached", host="::1", length=LENGTH) as front:
            assert front.port
    for protocol in ("redis", "memcached"):
        for host in ("0.0.0.0", "::", "192.0.2.1"):
            with pytest.raises(NearsideError, match="allowed are addresses of the loopback interface"):
                KvServer(protocol, host=host)
    with KvServer("redis", host="0.0.0.0", protected=False, length=LENGTH) as front:
        assert redis.Redis(port=front.port, retry=never).ping()


def test_kv_server_refuses_web_pages(capfd) -> None:
    """A browser's request with commands in its body leaves the store unchanged, and is reported to the operator."""
    for protocol in CLIENTS:
        with KvServer(protocol, length=LENGTH) as front:
            client = CLIENTS[protocol](front)
            client.set(b"keep", b"1")
            body = "FLUSHALL\r\nflush_all\r\n"
            for method, url in (("POST", "/"), ("PUT", "/x"), ("GET", "/")):
                asked = http.client.HTTPConnection("127.0.0.1", front.port, timeout=600)
                asked.request(method, url, body=body)
                with pytest.raises((http.client.HTTPException, ConnectionError)):
                    asked.getresponse()
            assert client.get(b"keep") == b"1"
            assert front.close()["connections"]["hung_up"] == 3
        assert "nearside pm serve: rejected a client: it speaks HTTP" in capfd.readouterr().err


def test_kv_server_memcached_commands() -> None:
    with KvServer("memcached", length=LENGTH) as front:
        client = Memcached(front).client
        assert client.add("n", "41")
        assert not client.add("n", "1")
        assert client.incr("n", 1) == 42
        assert client.decr("n", 100) == 0
        value, unique = client.gets("n")
        assert client.cas("n", value + b"1", unique)
        assert client.cas("n", b"2", unique) is False
        assert client.get_many(["n", "m"]) == {"n": b"01"}
        assert client.stats()[b"curr_items"] == 1
        assert client.flush_all()
        assert client.get("n") is None


@pytest.fixture(scope="module")
def redis_tools() -> Path:
    try:
        return redis_kit.KIT.folder(tell=False)
    except guest.NoKit as reason:
        pytest.skip(f"no redis-cli and redis-benchmark: {reason}")


def run_tool(kit: Path, name: str, port: int, *words: str, **options: Any) -> str:
    command = [kit / name, "-p", str(port), *words]
    environment = os.environ | {"LD_LIBRARY_PATH": str(kit / "lib")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_kv_server_redis_benchmark_runs(redis_tools) -> None:
    with KvServer("redis", length=LENGTH) as front:
        words = ["-n", "200", "-c", "4", "-P", "4", "-t", "ping,set,get,incr,mset", "-q"]
        reported = run_tool(redis_tools, "redis-benchmark", front.port, *words)
        assert "Error" not in reported
        for name in ("SET", "GET", "INCR", "MSET"):
            assert f"{name}" in reported


def test_kv_server_redis_cli_reads_committed_data_after_a_power_cut(redis_tools) -> None:
    with KvServer("redis", length=LENGTH) as front:

        def cli(*words: str, **options: Any) -> str:
            return run_tool(redis_tools, "redis-cli", front.port, *words, **options).strip()

        assert cli("set", "a", "1") == "OK"
        assert cli("incr", "a") == "2"
        assert cli(input="multi\nset b 3\nincr a\nexec\n").splitlines() == ["OK", "QUEUED", "QUEUED", "OK", "3"]
        # Large requests, as bulk loads of redis-cli send them.
        many = "".join(f"set key{n} {n * n}\n" for n in range(500))
        assert "errors: 0, replies: 500" in cli("--pipe", input=many)
        assert cli("dbsize") == "502"
        assert cli("debug", "powercut", "1") == "OK"
        with pytest.raises(AssertionError, match="closed the connection"):
            cli("set", "a", "4")  # it gets no answer
        assert cli("get", "a") in ("3", "4")
        assert (cli("get", "b"), cli("get", "key499"), cli("dbsize")) == ("3", "249001", "502")
        assert "ERR" in cli("lpush", "a", "1")


def test_kv_server_command_serves_until_a_signal_and_reports_times(tmp_path) -> None:
    path = tmp_path / "s"
    command = [sys.executable, "-m", "nearside.cli", "pm", "serve", "redis", "--socket", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        assert str(path) in served.stdout.readline()
        client = redis.Redis(unix_socket_path=str(path))
        assert client.set("a", "b")
        served.send_signal(signal.SIGTERM)
        out, _ = served.communicate(timeout=600)
    assert served.returncode == 0
    assert "simulated" in out
    assert not path.exists()


@pytest.mark.parametrize(
    ("protocol", "options", "text"),
    [
        ("http", {}, "redis, memcached"),
        ("redis", {"mechanism": "none"}, "undo"),
        ("redis", {"by": "gpu"}, "cpu, device"),
        ("redis", {"port": 70000}, "65535"),
        ("redis", {"port": 1, "socket": Path("s")}, "port = 1, socket = s: allowed is one of them"),
        ("redis", {"host": "example"}, 'host = "example": allowed are IP addresses of this machine'),
        ("redis", {"host": "::1", "socket": Path("s")}, "host = ::1, socket = s: allowed is one of them"),
        ("redis", {"password": ""}, "the password is empty"),
        ("memcached", {"password": "x"}, "memcached's protocol has none"),
        ("redis", {"cut_after": 0}, "1 or more"),
        ("redis", {"length": (4 << 20) - 1}, "length = 4194303: allowed are 4 MiB to what the design's window has"),
        ("redis", {"length": 1 << 50}, "a pool of 1125899906842624 bytes"),
    ],
)
def test_kv_server_errors_of_arguments(protocol: str, options: dict, text: str) -> None:
    with pytest.raises(NearsideError, match=text):
        KvServer(protocol, **options)
