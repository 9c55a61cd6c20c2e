"""`foredeck engine`: the process that the Pi extension starts."""

from __future__ import annotations

import gc
import os
from argparse import Namespace

from foredeck.cli.common import config_flags


def run(args: Namespace) -> int:
    """`foredeck engine`."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # saves a scan of all packages
    gc.disable()  # what imports leave behind stays: looking for garbage in it only costs time
    from foredeck.engine.engine import Engine
    from foredeck.rpc.server import serve

    gc.freeze()
    gc.enable()
    return serve(Engine, config_flags(args))
