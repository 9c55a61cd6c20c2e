"""The parts of the configuration that assembling and compacting need."""

from __future__ import annotations

from foredeck.config import Config
from foredeck.context.calls.call import AssemblySettings
from foredeck.context.digests import DigestSize
from foredeck.context.head import HeadBudget
from foredeck.context.rebase import RebaseThresholds, WaterMarks
from foredeck.model.own_tools import definition_chars

LIMIT_CHARS_PER_TOKEN = 4
"""Limits are configured in tokens and kept in characters, before any provider has counted."""

SUMMARY_CHARS = 2000 * LIMIT_CHARS_PER_TOKEN
"""Longest summary that foredeck writes; never more than a tenth of the model's window."""


def assembler_settings(config: Config) -> AssemblySettings:
    """What the user can change about assembling and compacting."""
    rebase = config.rebase
    return AssemblySettings(
        marks=WaterMarks(rebase.high_water),
        thresholds=RebaseThresholds(rebase.rent_factor, rebase.guard),
        within_sealed_turns=rebase.within_sealed_turns,
        ending_share=rebase.ending_share,
        cache_ttl_s=rebase.cache_ttl_s,
        cache_rule=None if rebase.cache == "auto" else rebase.cache,
        min_saving_chars=rebase.min_saving_tokens * LIMIT_CHARS_PER_TOKEN,
        digests=DigestSize(config.digests.max_tokens * LIMIT_CHARS_PER_TOKEN),
        summary_chars=SUMMARY_CHARS,
        automatic_summary=config.compaction.automatic,
        manual_summary=config.compaction.manual,
        pastes=config.pastes.objects,
        definition_chars=definition_chars(*config.tools.declared()),
        pause_minutes=config.head.pause_minutes,
        head=HeadBudget(config.head.tokens, config.head.max_tokens),
    )
