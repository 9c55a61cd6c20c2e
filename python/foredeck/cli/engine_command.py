from __future__ import annotations

import gc
import os
from argparse import Namespace

from foredeck.cli.arguments import config_flags
from foredeck.cli.registry import NO_PLUGINS
from foredeck.engine.engine import Engine
from foredeck.rpc.server import serve


def run(args: Namespace) -> int:
    """`foredeck engine`."""
    os.environ.setdefault(NO_PLUGINS, "1")  # for what loads with the first session, too
    gc.freeze()  # what is here by now stays, and need not be looked at again
    return serve(Engine, config_flags(args))
