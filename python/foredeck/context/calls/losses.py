from __future__ import annotations

from collections.abc import Collection, Iterator

from foredeck.context.calls.call import CallInProgress
from foredeck.context.messages.items import Block, Item, block_chars
from foredeck.context.messages.shape import is_signed
from foredeck.context.plan.ops import Op
from foredeck.context.plan.plan import Plan
from foredeck.context.state.request import Model
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.lost_reasoning import BlockSpot, LostReasoning

CALLS_AT_WORK = 20
"""Reasoning older than this counts as unused."""

BYTES_PER_SIGN = 3 / 4
"""Sealed reasoning is base64."""


def losses_of(call: CallInProgress) -> LostReasoning:
    """Reasoning newly lost with this call; providers repeat the blocks they dropped."""
    branch, plan = call.context.branch, call.context.plan
    dropped = sorted(_reported(call) - branch.lost)
    ours = [
        (index, block)
        for index in sorted(call.context.changed)
        for block in _left_out(plan.items[index], plan.ops[index])
        if index < call.first_new
        and (index, block) not in branch.lost
        and (index, block) not in dropped
    ]
    tokens = [
        round(sum(reasoning_tokens(plan.items[index], block) for index, block in spots))
        for spots in (ours, dropped)
    ]
    return LostReasoning(tuple(ours), tuple(dropped), *tokens)


def withheld_chars(call: CallInProgress) -> int:
    """Characters of reasoning that go out uncounted."""
    branch, plan, model = call.context.branch, call.context.plan, call.request.model
    spots = branch.lost | _reported(call)
    if model is not None and model.is_bound:
        behind = range(call.first_resent, min(call.first_new, len(plan)))
        spots |= {(index, block) for index in behind for block in sealed_blocks(plan.items[index])}
    return sum(
        block_chars(plan.items[index].blocks[block])
        for index, block in spots
        if index < len(plan)
        and block in sealed_blocks(plan.items[index])
        and block not in _left_out(plan.items[index], plan.ops[index])
    )


def _reported(call: CallInProgress) -> set[BlockSpot]:
    plan = call.context.plan
    # The host's numbers are those of the list that these calls were made with.
    same = range(min(call.alignment.matched, len(plan)))
    return {
        (index, block)
        for each in call.request.outcomes
        for index, block in each.dropped
        if index in same and block in sealed_blocks(plan.items[index])
    }


def reasoning_behind(call: CallInProgress, first: int = 0) -> list[float]:
    """Tokens of reasoning lost if each message from `first` on changed; old calls weigh less."""
    branch, model = call.context.branch, call.request.model
    plan, rewritten = branch.plan, branch.rewritten
    tokens = [0.0] * (len(plan) + 1)
    if model is None or not model.is_bound:
        return tokens
    answers = 0
    for index in range(len(plan) - 1, first - 1, -1):
        answers += plan.items[index].kind == "assistant"
        # What stands behind the newest rebase was lost with it.
        is_valid = not rewritten.first <= index < rewritten.until
        own = _held_tokens(plan, index, branch.lost, model) if is_valid else 0.0
        weight = 1.0 if answers <= CALLS_AT_WORK else call.settings.thresholds.old_reasoning
        tokens[index] = tokens[index + 1] + weight * own
    # A message does not precede its own reasoning.
    return tokens[1:]


def _held_tokens(plan: Plan, index: int, lost: Collection[BlockSpot], model: Model) -> float:
    item = plan.items[index]
    if item.kind != "assistant" or item.unsent or plan.is_omitted(index):
        return 0.0
    if not item.signed:
        return model.assumed_reasoning
    blocks = [block for block in sealed_blocks(item) if (index, block) not in lost]
    return sum(reasoning_tokens(item, block) for block in blocks)


def sealed_blocks(item: Item) -> list[int]:
    if not item.signed or item.unsent:
        return []
    return [number for number, block in enumerate(item.blocks) if is_signed(block)]


def reasoning_tokens(item: Item, block: int) -> float:
    """The block's share of the provider's count, else an estimate by size."""
    sizes = {number: _size(item.blocks[number]) for number in sealed_blocks(item)}
    counted = (item.meta.get("usage") or {}).get("reasoning")
    if isinstance(counted, int | float) and counted > 0:
        return float(counted) * sizes[block] / (sum(sizes.values()) or 1)
    return sizes[block] / CHARS_PER_TOKEN


def _size(block: Block) -> float:
    seal = block.get("thinkingSignature") or block.get("thoughtSignature") or ""
    return max(len(str(block.get("thinking") or "")), len(str(seal)) * BYTES_PER_SIGN)


def _left_out(item: Item, op: Op) -> Iterator[int]:
    indexes = None if op.blocks is None else {block.get("keep") for block in op.blocks}
    for block in sealed_blocks(item):
        if op.form == "omitted" or (indexes is not None and block not in indexes):
            yield block
