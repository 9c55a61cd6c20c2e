"""After a pause in a turn whose sealed reasoning forbids folding: the turn is ended.

A pause is a cold cache: the user was away, or a command ran for longer than the provider keeps a
prompt. All of the prompt is written anew then. A user message that holds more than tool results
ends a turn; so where much of the prompt could go but for that reasoning, a word of ours follows the
newest results, the reasoning is left out, and what may go folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from foredeck.context import wording
from foredeck.context.cache.rebase import first_mutable
from foredeck.context.messages.items import text_block
from foredeck.context.plan.ops import PieceRef
from foredeck.context.plan.says import Say
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.rewriting.costs import CallCosts
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision

LEAST_TOKENS = 2000
"""No turn is ended for less, however small the prompt is."""
TURN_ENDED = (
    "Older output was folded and the model's reasoning in this turn left out: after the pause all "
    "of the prompt is paid for again anyway. rebase.ending_share = 1 keeps both."
)
"""What the user reads of it."""


def ends_turn(
    context: RenderContext, costs: CallCosts, savings: Mapping[PieceRef, int], share: float
) -> bool:
    """Whether to end the turn under way at this call: after a pause, where at least this share of
    the prompt could go but for reasoning of the turn. `savings`: characters, by what may go."""
    plan = context.plan
    items = plan.items
    if share >= 1 or not costs.inputs.cold or not items or items[-1].kind != "result":
        return False
    free = first_mutable(plan)
    gained = sum(chars for ref, chars in savings.items() if ref.message < free)
    least = max(share * plan.chars_sent, LEAST_TOKENS * CHARS_PER_TOKEN)
    return gained >= least


def end_turn(context: RenderContext, decide: Callable[[], Decision]) -> Decision:
    """Decide, with leave to rewrite what precedes sealed reasoning of the turn under way. The
    word that ends the turn follows the newest results, unless nothing there was rewritten."""
    plan = context.plan
    bound = first_mutable(plan)
    plan.turn_ends = True
    try:
        decision = decide()
    finally:
        plan.turn_ends = False
    if min(context.changed, default=bound) >= bound:
        return decision
    ended = Say("turn_end", [text_block(wording.turn_ended())])
    context.branch.plan.say(len(plan), ended)
    return decision._replace(turn_ended=True)
