"""Two nodes over one Postgres, each with an index of its own, as on two machines."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from foredeck.errors import StoreError, StoreUnavailable
from foredeck_xtdb.database.adapter import Database, open_xtdb
from foredeck_xtdb.database.client import XtdbClient
from foredeck_xtdb.node import NodeFolder, private_node, start, stop
from foredeck_xtdb.runtime import Runtime
from machines.postgres import Postgres, private_postgres
from processes import STARTED
from store.pulled import Pulled

TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Machines:
    """The nodes of two machines, and the Postgres that they share."""

    postgres: Postgres
    runtime: Runtime
    nodes: tuple[NodeFolder, NodeFolder]
    _started: list[object] = field(default_factory=list)

    def openers(self, **more: object) -> tuple[partial[Database], partial[Database]]:
        """What opens one new namespace on each of the machines; picklable."""
        options = {"namespace": _new_namespace(), "timeout_ms": TIMEOUT_MS, **more}
        return (self._opener(0, options), self._opener(1, options))

    def settings(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The configuration of an engine on each of the machines, with one new namespace."""
        namespace = _new_namespace()
        return (self._settings(0, namespace), self._settings(1, namespace))

    def heal(self) -> None:
        """Start again what no longer answers or indexes, whatever the last test did to it."""
        if not self.postgres.is_running:
            self.postgres.start()
        for number, node in enumerate(self.nodes):
            if not self._is_healthy(number):
                stop(node)
                _, _, process = start(node, self.runtime, topology="postgres", until_eof=True)
                self._started.append(process)  # it ends when nobody holds its input any more

    def _is_healthy(self, machine: int) -> bool:
        node = self.nodes[machine]
        if node.running() is None:
            return False
        with closing(XtdbClient(self._url(machine), token=node.token())) as client:
            try:
                return not client.status()["ingesterFailed?"]
            except StoreError:
                return False

    def _settings(self, machine: int, namespace: str) -> dict[str, Any]:
        node = self.nodes[machine]
        shared = {"namespace": namespace, "timeout_ms": TIMEOUT_MS}
        return {
            "store": "xtdb",
            "xtdb": {"url": self._url(machine), "token_file": node.token_file, **shared},
        }

    def _opener(self, machine: int, options: dict[str, Any]) -> partial[Database]:
        return partial(open_xtdb, self._url(machine), token=self.nodes[machine].token(), **options)

    def _url(self, machine: int) -> str:
        return self.nodes[machine].running().url


def _new_namespace() -> str:
    return f"t{secrets.token_hex(8)}"


def open_either(openers: tuple[partial[Database], ...]) -> Pulled:
    """A store on one of the machines, whichever."""
    return Pulled(random.choice(openers)())


@pytest.fixture(scope="package")
def started_machines(
    runtime: Runtime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machines]:
    """One Postgres and two nodes for all tests of this folder, and no longer: nodes over Postgres
    ask it for news all the time."""
    root = tmp_path_factory.mktemp("machines")
    try:
        running = private_postgres()
        postgres = running.__enter__()
    except StoreUnavailable as error:
        pytest.skip(str(error))
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in postgres.environment.items():
                patch.setenv(name, value)
            with (
                private_node(root / "one", runtime, "postgres") as one,
                private_node(root / "two", runtime, "postgres") as two,
            ):
                yield Machines(postgres, runtime, (one, two))
    finally:
        running.__exit__(None, None, None)


@pytest.fixture
def machines(started_machines: Machines) -> Machines:
    """The two machines, both at work."""
    started_machines.heal()
    STARTED.forget()
    return started_machines
