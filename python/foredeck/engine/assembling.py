"""Makes a session's assembler from the configuration."""

from __future__ import annotations

from foredeck.config import Config
from foredeck.context.assembler import Assembler
from foredeck.context.calls.call import AssemblySettings
from foredeck.context.digests import DigestSize
from foredeck.context.head import HeadBudget
from foredeck.context.layouts import make_layout
from foredeck.context.policies.built_in import make_policy
from foredeck.context.rebase import RebaseThresholds, WaterMarks
from foredeck.context.state.session import ContextFacilities, Session
from foredeck.model.own_tools import definition_chars

LIMIT_CHARS_PER_TOKEN = 4
"""For limits configured in tokens and kept in characters."""

SUMMARY_CHARS = 2000 * LIMIT_CHARS_PER_TOKEN
"""Longest summary that foredeck writes; at most a tenth of the window."""


def make_assembler(config: Config, session: Session, facilities: ContextFacilities) -> Assembler:
    layout, policy = make_layout(config.layout), make_policy(config.policy, config)
    return Assembler(session, layout, policy, _settings(config), facilities)


def _settings(config: Config) -> AssemblySettings:
    rebase = config.rebase
    return AssemblySettings(
        marks=WaterMarks(rebase.high_water),
        thresholds=RebaseThresholds(
            rebase.carrying_factor,
            rebase.guard,
            reasoning=rebase.reasoning,
            gap=rebase.gap,
            old_reasoning=rebase.old_reasoning,
            pause_factor=rebase.pause_factor,
        ),
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
