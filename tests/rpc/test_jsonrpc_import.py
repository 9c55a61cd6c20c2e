"""jsonrpcserver is imported without what it does not need here."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import asyncio, sys
import foredeck.rpc.server
from foredeck.rpc.dispatch import Method, OpenRequest, build_table, dispatch
assert "jsonschema" not in sys.modules, "jsonschema was imported"

async def echo(params):
    return params

table = build_table({"echo": Method(echo)})
print(asyncio.run(dispatch(OpenRequest("echo", 1, {"a": 1}, None), table)))
import jsonschema.validators
assert jsonschema.validators.validator_for({}).__name__.startswith("Draft")
"""


def test_the_engine_starts_without_jsonschema_and_others_still_get_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{'jsonrpc': '2.0', 'result': {'a': 1}, 'id': 1}"
