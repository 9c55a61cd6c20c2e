"""`foredeck engine`: the process that the Pi extension starts."""

from __future__ import annotations

import gc
import os
from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_config_flags, config_flags
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # saves a scan of all packages
    gc.disable()  # what imports leave behind stays: looking for garbage in it only costs time
    from foredeck.engine.engine import Engine
    from foredeck.rpc.server import serve

    gc.freeze()
    gc.enable()
    return serve(Engine, config_flags(args))


def _configure(parser: ArgumentParser) -> None:
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Serve one host: JSON-RPC requests on stdin, one per line, answers on stdout, the log\n"
        "on stderr (docs/protocol.md). The Pi extension starts this; run it by hand to see\n"
        "whether it starts. It exits when its input ends."
    ),
    example='echo \'{"jsonrpc":"2.0","id":1,"method":"ping"}\' | foredeck engine',
    configure=_configure,
    run=_run,
)
