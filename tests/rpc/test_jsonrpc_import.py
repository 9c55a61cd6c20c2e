"""jsonrpcserver is imported without what it does not need here."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import asyncio, sys
import foredeck.rpc.server
from foredeck.rpc.peer import Method, Peer
for unused in ("jsonschema", "http.server"):
    assert unused not in sys.modules, f"{unused} was imported"

class Lines:
    def start(self, peer):
        peer.line_received(b'{"jsonrpc": "2.0", "id": 1, "method": "echo", "params": {"a": 1}}')
        peer.stop("that was all")
    def send(self, line):
        print(line.decode(), end="")

async def echo(params):
    return params

async def serve():
    await Peer(Lines(), {"echo": Method(echo)}).run()

asyncio.run(serve())
import http.server, jsonschema.validators
assert jsonschema.validators.validator_for({}).__name__.startswith("Draft")
assert http.server.HTTPServer is not object
"""


def test_the_engine_starts_without_jsonschema_and_others_still_get_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == '{"jsonrpc":"2.0","result":{"a":1},"id":1}'
