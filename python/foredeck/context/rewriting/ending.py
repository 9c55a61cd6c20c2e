"""After a pause in a turn whose sealed reasoning forbids folding: the turn is ended.

A pause is a cold cache: the user was away, or a command ran for longer than the provider keeps a
prompt. All of the prompt is written anew then. A user message that holds more than tool results
ends a turn; so where much of the prompt could go but for that reasoning, a word of ours follows the
newest results, the reasoning is left out, and what may go folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from foredeck.context import wording
from foredeck.context.cache.rebase import CHARS_PER_TOKEN, first_free
from foredeck.context.messages.items import text_block
from foredeck.context.messages.parts import PieceRef
from foredeck.context.messages.repairs import Insert
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.rewriting.costs import CallCosts

LEAST_TOKENS = 2000
"""No turn is ended for less, however small the prompt is."""


def ends_turn(
    context: RenderContext, costs: CallCosts, savings: Mapping[PieceRef, int], share: float
) -> bool:
    """Whether to end the turn under way at this call: after a pause, where at least this share of
    the prompt could go but for reasoning of the turn. `savings`: characters, by what may go."""
    conversation = context.conversation
    items = conversation.items
    if share >= 1 or not costs.inputs.cold or not items or items[-1].kind != "result":
        return False
    free = first_free(conversation)
    gained = sum(chars for ref, chars in savings.items() if ref.message < free)
    least = max(share * conversation.chars_sent, LEAST_TOKENS * CHARS_PER_TOKEN)
    return gained >= least


@contextmanager
def turn_ending(context: RenderContext) -> Iterator[None]:
    """What is rewritten within may stand before sealed reasoning of the turn under way; the word
    that ends it is put after the newest results, unless nothing there was rewritten."""
    conversation = context.conversation
    bound = first_free(conversation)
    conversation.turn_ends = True
    try:
        yield
    finally:
        conversation.turn_ends = False
    if min(context.changed, default=bound) < bound:
        ours: Insert = {"kind": "user", "blocks": [text_block(wording.turn_ended())], "ends": True}
        context.branch.edits.insert(len(conversation), ours)
