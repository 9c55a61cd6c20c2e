"""Where the demo keeps its objects: SQLite in its scratch folder, or XTDB where that is asked for.

On XTDB the demo has a namespace of its own on the node, or server, that the user's configuration
names; where no node runs it starts one in its scratch folder, for its own time.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from foredeck.config import Config, load_config
from foredeck.errors import Corrupt
from foredeck.store.kind import store_kind


@dataclass(frozen=True, slots=True)
class DemoStore:
    """The store of one demo. `environment` chooses it, beside FOREDECK_HOME, which is `home`."""

    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        """The configuration of the demo's engine, without the user's own."""
        environ = {"FOREDECK_HOME": str(self.home), **self.environment}
        return load_config(environ=environ, user_file=self.home / "no-user-configuration").config

    def settle(self) -> str | None:
        """Wait until everything is delivered to XTDB, and describe in a line what it
        holds; None on SQLite.

        Raises `StoreUnavailable` where XTDB does not take it, `Corrupt` where it has something
        else than the local copy.
        """
        found = store_kind(self.config.store).deliver_and_compare(self.config)
        if found is None:
            return None
        if found.differs or found.extra:
            differs = found.differs or f"{found.extra} more"
            raise Corrupt(f"XTDB and the local copy differ: {differs}")
        return f"{found.holds},\nall equal to the local copy."


@contextmanager
def demo_store(home: Path) -> Iterator[DemoStore]:
    """The store that the user's configuration asks for, with its state in `home`.

    Raises `StoreUnavailable` where no XTDB node is installed.
    """
    user = load_config(environ=os.environ).config
    if user.store != "xtdb":
        yield DemoStore(home)
        return
    from foredeck.xtdb.node import own_node_folder
    from foredeck_bench.crash.homes import prepared

    own = own_node_folder(user.home)
    node = own.running() if user.xtdb.url is None else None
    url = user.xtdb.url or (None if node is None else node.url)
    namespace = f"demo-{secrets.token_hex(4)}"
    environment = {"FOREDECK_STORE": "xtdb", "FOREDECK_XTDB__NAMESPACE": namespace}
    if url is None:
        print("No XTDB node runs here: one is started for the demo, and stopped at its end.")
        with prepared(home, "xtdb", user.home):
            yield DemoStore(home, environment)
        return
    print(f"XTDB at {url}, namespace {namespace}.")
    token_file = own.token_file if user.xtdb.url is None else user.xtdb.token_file
    environment["FOREDECK_XTDB__URL"] = url
    if token_file is not None:
        environment["FOREDECK_XTDB__TOKEN_FILE"] = str(token_file)
    yield DemoStore(home, environment)
