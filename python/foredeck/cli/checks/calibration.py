"""How prompts are measured: characters per token, as each model's provider has counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from foredeck.cli.checks.finding import Finding, ok
from foredeck.context.cache.rebase import CHARS_PER_TOKEN
from foredeck.stores import open_store

if TYPE_CHECKING:
    from foredeck.config import Config


def check_calibration(config: Config) -> Iterator[Finding]:
    """What a sound store holds of it. A node that does not run is not started for this."""
    if config.store == "sqlite" and not config.sqlite_file.exists():
        yield _none()
        return
    if config.store == "xtdb" and config.xtdb.url is None and not _own_node_runs(config):
        return
    with closing(open_store(config, lazy=True)) as store:
        heads = store.query("calibration")
    lines = sorted(
        f"{fields['model']}: {fields['chars_per_token']} characters a token "
        f"({len(fields['points'])} calls)"
        for fields in (head.fields for head in heads)
    )
    yield ok("calibration", "\n".join(lines)) if lines else _none()


def _own_node_runs(config: Config) -> bool:
    from foredeck.xtdb.node.supervise import own_node_folder

    return own_node_folder(config.home).running() is not None


def _none() -> Finding:
    text = f"no provider has counted yet: sizes are estimated, {CHARS_PER_TOKEN} characters a token"
    return ok("calibration", text)
