"""What tests do with the real `pi` binary; the fixture `pi` hands it to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import cycle, product
from pathlib import Path
from typing import Any, Literal

import pytest

from foredeck.config import Config, load_config
from foredeck.model.identity import sha256_hex
from foredeck_bench.crash.stores import settings as store_settings
from foredeck_bench.scripted.pi_process import (
    MODEL,
    NEWEST,
    PATIENT,
    VERSIONS,
    PiInstall,
    PiWorkspace,
    model_record,
    write_agent_dir,
)
from foredeck_bench.scripted.pi_rpc import RpcPi
from foredeck_bench.twin.script import Api, Script
from foredeck_bench.twin.server import ScriptedModel
from foredeck_xtdb.node import own_node_folder
from pi_runs import PrintRun, run_print, twin_record
from terminal import SIZE, TerminalPi

_CHOSEN = os.environ.get("FOREDECK_TEST_VERSIONS")
SUPPORTED = (NEWEST,) if _CHOSEN == NEWEST else VERSIONS
TESTED = SUPPORTED if _CHOSEN == "all" else SUPPORTED[:1]
"""The versions that a test runs on: the first supported one, or what FOREDECK_TEST_VERSIONS sets;
`newest` is for `scripts/test newest`, `all` for every test on every version."""

both_versions = pytest.mark.parametrize("pi", SUPPORTED, indirect=True)
"""For what depends on the version of Pi: its wire, hooks, sessions, compaction, the terminal."""


def on_either(name: str, *values: Any) -> pytest.MarkDecorator:
    """Values of a parameter and versions of Pi in turn: for what neither changes of the other."""
    pairs = (
        product(SUPPORTED, values)
        if _CHOSEN == "all"
        else zip(cycle(SUPPORTED), values, strict=False)
    )
    return pytest.mark.parametrize(("pi", name), list(pairs), indirect=["pi"])


STORE: Literal["sqlite", "xtdb"] = (
    "xtdb" if os.environ.get("FOREDECK_TEST_STORE") == "xtdb" else "sqlite"
)
"""The store of every run here; FOREDECK_TEST_STORE sets it."""

PATIENCE_S = 240.0
"""Far beyond what any run here takes: only one that hangs gets there."""

TEXT = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(60))
"""What `a.txt` holds before the work."""

EAGER = {
    "FOREDECK_POLICY": "seed-window",
    "FOREDECK_SEED_WINDOW__PER_TURN": "3",
    "FOREDECK_REBASE__CARRYING_FACTOR": "0",
    "FOREDECK_REBASE__GAP": "0",
    "FOREDECK_REBASE__GUARD": "10",
}
"""So that a short session has several rebases."""

SMALL = {"compaction": {"enabled": True, "reserveTokens": 4000, "keepRecentTokens": 2000}}
TALK = "a word or two more " * 600
"""What a few answers of fill a window with those settings."""


def questions(count: int) -> list[str]:
    """So many prompts, each another."""
    return [f"Question {number}" for number in range(count)]


Asked = Callable[..., str]
"""Runs a command of foredeck's with these arguments; returns what it has printed."""


class Pi:
    """One version of Pi in one scratch folder, with scripted models as needed.

    `foredeck=True` loads this checkout as a user would with `pi -e <checkout>`; `extensions`,
    files or the text of one, are loaded after it, in their order, those in `before` before it.
    """

    def __init__(
        self,
        install: PiInstall,
        workspace: PiWorkspace,
        checkout: Path,
        node_home: Path | None = None,
    ) -> None:
        """`node_home`: the state folder of a running XTDB node, used under a name of its own."""
        self.install = install
        self.workspace = workspace
        self._checkout = checkout
        self._stack = ExitStack()
        self._served: list[ScriptedModel] = []
        self._store = store_settings(STORE)
        if node_home is not None:
            self._store["FOREDECK_XTDB__NAMESPACE"] = f"t{workspace.mark}"
            own_node_folder(workspace.foredeck_home).root.symlink_to(
                own_node_folder(node_home).root
            )

    def config(self) -> Config:
        """The configuration of the engines that run here."""
        flags = [f"home={self.workspace.foredeck_home}"]
        environ = {**PATIENT, **self._store}
        return load_config(flags=flags, environ=environ, user_file=Path(os.devnull)).config

    @property
    def version(self) -> str:
        """Pi's version."""
        return self.install.version

    @property
    def repo(self) -> Path:
        """The folder that Pi works in; empty at first."""
        return self.workspace.repo

    def serve(
        self,
        script: Script,
        *,
        api: Api = "anthropic-messages",
        id: str = MODEL,
        context_window: int = 200_000,
        plain: bool = False,
        reasoning: bool = False,
        kept_s: int | None = None,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ScriptedModel:
        """Start a scripted model and make it the one that Pi uses.

        `context_window` is what Pi is told, in tokens; `id`, `plain`, `reasoning` and `kept_s`
        are as in `model_record`; `options` go to `ScriptedModel`.
        """
        flags: dict[str, Any] = {"plain": plain, "reasoning": reasoning, "kept_s": kept_s, "id": id}
        options = {"record": twin_record(api, model_record(api, **flags)), **options}
        model = self._stack.enter_context(ScriptedModel(script, **options))
        self._served.append(model)
        write_agent_dir(
            self.workspace.agent_dir,
            model.url,
            api=api,
            window=context_window,
            settings=dict(settings or {}),
            **flags,
        )
        return model

    def print(
        self,
        *prompts: str,
        foredeck: bool = False,
        extensions: Sequence[Path | str] = (),
        before: Sequence[Path | str] = (),
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> PrintRun:
        """Run `pi -p` with these prompts until it ends by itself."""
        return run_print(
            self.install,
            self.workspace,
            *prompts,
            extensions=self._loaded(foredeck, extensions, before),
            arguments=arguments,
            environment={**PATIENT, **self._store, **(environment or {})},
            timeout_s=timeout_s,
        )

    def rpc(
        self,
        *prompts: str,
        foredeck: bool = False,
        extensions: Sequence[Path | str] = (),
        before: Sequence[Path | str] = (),
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> RpcPi:
        """Start `pi --mode rpc` and send these prompts; shuts down with the test if not before."""
        client = RpcPi(
            self.install,
            self.workspace,
            extensions=self._loaded(foredeck, extensions, before),
            arguments=arguments,
            environment={**PATIENT, **self._store, **(environment or {})},
            timeout_s=PATIENCE_S,
        )
        self._stack.callback(client.shutdown)
        for prompt in prompts:
            client.prompt(prompt)
        return client

    def terminal(
        self,
        *,
        foredeck: bool = False,
        extensions: Sequence[Path | str] = (),
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        size: tuple[int, int] = SIZE,
    ) -> TerminalPi:
        """Start an interactive `pi` on a terminal; it is ended with the test if not before."""
        client = TerminalPi(
            self.install,
            self.workspace,
            extensions=self._loaded(foredeck, extensions),
            arguments=arguments,
            environment={**PATIENT, **self._store, **(environment or {})},
            size=size,
        )
        self._stack.callback(client.close)
        return client

    def close(self) -> None:
        """End everything that was started.

        Fails the test if something does not end, or if a prompt broke the rules of its API.
        """
        try:
            self._stack.close()
            left = self.workspace.leftovers(PATIENCE_S / 4)
        finally:
            self.workspace.end_leftovers()
        assert not left, f"processes outlived their run: {left}"
        assert [
            violation
            for model in self._served
            for violation in model.violations
            if "are used up" not in violation.message  # Whoever looks at the answer sees it.
        ] == []

    def _loaded(
        self, foredeck: bool, extensions: Sequence[Path | str], before: Sequence[Path | str] = ()
    ) -> list[Path]:
        return [
            each if isinstance(each, Path) else self._written(each)
            for each in (*before, *([self._checkout] if foredeck else []), *extensions)
        ]

    def _written(self, extension: str) -> Path:
        path = self.workspace.root / f"{sha256_hex(extension.encode())[:8]}.ts"
        path.write_text(extension)
        return path
