"""How prompts are measured: characters per token, as each model's provider has counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from foredeck.context.cache.rebase import CHARS_PER_TOKEN
from foredeck.finding import Finding, ok
from foredeck.store.opening import open_store
from foredeck.store.registry import store_kind

if TYPE_CHECKING:
    from foredeck.config import Config


def check_calibration(config: Config) -> Iterator[Finding]:
    """What a sound store holds of it. A node that does not run is not started for this."""
    kind = store_kind(config.store)
    if not kind.exists(config):
        yield _none()
        return
    if not kind.is_awake(config):
        return
    with closing(open_store(config, lazy=True)) as store:
        heads = store.query("calibration")
    lines = sorted(
        f"{fields['model']}: {fields['chars_per_token']} characters a token "
        f"({len(fields['points'])} calls)"
        for fields in (head.fields for head in heads)
    )
    yield ok("calibration", "\n".join(lines)) if lines else _none()


def _none() -> Finding:
    text = f"no provider has counted yet: sizes are estimated, {CHARS_PER_TOKEN} characters a token"
    return ok("calibration", text)
