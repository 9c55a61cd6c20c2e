"""The demo's store: SQLite in a scratch folder, or a namespace of XTDB."""

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
    """The store of one demo; `environment` chooses it."""

    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        environ = {"FOREDECK_HOME": str(self.home), **self.environment}
        return load_config(environ=environ, user_file=self.home / "no-user-configuration").config

    def settle(self) -> str | None:
        """Waits until XTDB has everything, and describes what it holds.

        Raises `StoreUnavailable`, or `Corrupt` if the local copy differs.
        """
        comparison = store_kind(self.config.store).deliver_and_compare(self.config)
        if comparison is None:
            return None
        if comparison.differs or comparison.extra:
            differs = comparison.differs or f"{comparison.extra} more"
            raise Corrupt(f"XTDB and the local copy differ: {differs}")
        return f"{comparison.holds},\nall equal to the local copy."


@contextmanager
def demo_store(home: Path) -> Iterator[DemoStore]:
    """The store of the user's configuration, with state in `home`. Raises `StoreUnavailable`."""
    user = load_config(environ=os.environ).config
    if user.store != "xtdb":
        yield DemoStore(home)
        return
    from foredeck_bench.crash.homes import prepared
    from foredeck_xtdb.node import own_node_folder

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
