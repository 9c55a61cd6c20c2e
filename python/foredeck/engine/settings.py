"""The parts of the configuration that assembling and compacting need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.context.cache.economics import RebaseThresholds
from foredeck.context.cache.rebase import WaterMarks
from foredeck.context.calls.call import AssemblySettings, RebaseSettings
from foredeck.context.digests import DigestSize
from foredeck.context.head import HeadBudget
from foredeck.model.own_tools import definition_chars

if TYPE_CHECKING:  # imported with the first compaction
    from foredeck.context.window.compacting import CompactionSettings

LIMIT_CHARS_PER_TOKEN = 4
"""Limits are configured in tokens and kept in characters, before any provider has counted."""

SUMMARY_CHARS = 2000 * LIMIT_CHARS_PER_TOKEN
"""Longest summary that foredeck writes; never more than a tenth of the model's window."""


def assembler_settings(config: Config) -> AssemblySettings:
    """What the user can change about assembling."""
    rebase = config.rebase
    return AssemblySettings(
        rebase=RebaseSettings(
            WaterMarks(rebase.high_water),
            RebaseThresholds(rebase.rent_factor, rebase.guard),
        ),
        within_sealed_turns=rebase.within_sealed_turns,
        ending_share=rebase.ending_share,
        cache_ttl_s=rebase.cache_ttl_s,
        cache_rule=None if rebase.cache == "auto" else rebase.cache,
        min_saving_chars=rebase.min_saving_tokens * LIMIT_CHARS_PER_TOKEN,
        digests=DigestSize(config.digests.max_tokens * LIMIT_CHARS_PER_TOKEN),
        summary_chars=SUMMARY_CHARS,
        pastes=config.pastes.objects,
        definition_chars=definition_chars(*config.tools.declared()),
        pause_minutes=config.head.pause_minutes,
        head=HeadBudget(config.head.tokens, config.head.max_tokens),
    )


def compaction_settings(config: Config) -> CompactionSettings:
    """What the user can change about compactions."""
    # Loads with the first compaction.
    from foredeck.context.window.compacting import CompactionSettings

    return CompactionSettings(
        automatic=config.compaction.automatic,
        manual=config.compaction.manual,
        summary_chars=SUMMARY_CHARS,
        marks=WaterMarks(config.rebase.high_water),
    )
