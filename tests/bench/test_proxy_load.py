"""`foredeck bench proxy` answers every client, and prints all its figures."""

from __future__ import annotations

from foredeck_bench.proxy_load import measure


def test_every_client_is_answered() -> None:
    found = measure(tokens=4_000, requests=2, clients=3, sessions=4)
    assert found["answered"] == 15
    assert set(found["first_byte_ms"]) == {"direct", "passed", "managed"}
    assert len(found["memory_mb"]["sessions"]) == 4
    assert min(found["megabytes_a_second"].values()) > 0
