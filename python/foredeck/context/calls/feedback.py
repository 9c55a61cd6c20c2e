"""What earlier prompts teach about a model: token counts, and refusals over sealed reasoning."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from foredeck.context.calls.call import CallInProgress
from foredeck.context.intake.take_in import Alignment
from foredeck.context.messages.items import Block, Item, block_chars
from foredeck.context.messages.shape import is_signed, seal_of
from foredeck.context.plan.ops import Op
from foredeck.context.plan.plan import Plan
from foredeck.context.plan.wires import SealRule, binds_by_table, binds_in_every_turn
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.gauge import Calibrator, counted_chars
from foredeck.context.state.objects import Objects, Workspace
from foredeck.context.state.request import Inbox, Model, Request
from foredeck.model.call_values import CHARS_PER_TOKEN, CalledModel, ReportedUsage
from foredeck.model.calls import BlockSpot, CallRecord, LostReasoning
from foredeck.model.records import ReasoningDocument, calibration_id, call_id, reasoning_id

CALLS_AT_WORK = 20
"""Reasoning older than this counts as unused."""

BYTES_PER_SIGN = 3 / 4
"""Sealed reasoning is base64."""


def reasoning_left_out(call: CallInProgress) -> tuple[LostReasoning, int]:
    """Reasoning newly lost with this call, and the characters of all that go out uncounted."""
    branch, plan, model = call.context.branch, call.context.plan, call.request.model
    reports = _reported(call)
    # Providers repeat the blocks that they dropped.
    dropped = sorted(reports - branch.lost)
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
    spots = branch.lost_in_prompt() | reports
    if model is not None and model.is_bound:
        behind = range(call.first_resent, min(call.first_new, len(plan)))
        spots |= {(index, block) for index in behind for block in sealed_blocks(plan.items[index])}
    uncounted = sum(
        block_chars(plan.items[index].blocks[block])
        for index, block in spots
        if not plan.ops[index].leaves_out(block) and block in sealed_blocks(plan.items[index])
    )
    return LostReasoning(tuple(ours), tuple(dropped), *tokens), uncounted


def _reported(call: CallInProgress) -> set[BlockSpot]:
    plan = call.context.plan
    dropped = frozenset().union(*(each.dropped for each in call.request.outcomes))
    if not dropped:
        return set()
    return {
        (index, block)
        for index in range(min(call.alignment.matched, len(plan)))
        for block in sealed_blocks(plan.items[index])
        if seal_of(plan.items[index].blocks[block]) in dropped
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
        weight = 1.0 if answers <= CALLS_AT_WORK else call.config.rebase.old_reasoning
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
    return (block for block in sealed_blocks(item) if op.leaves_out(block))


def take_report(
    chat: Chat, alignment: Alignment, calibrator: Calibrator, model: Model | None
) -> ReportedUsage | None:
    """Learns from the newest call's answer; returns what the provider counted.

    Calls without foredeck teach nothing.
    """
    record = chat.branch_record
    if record is None or record.is_host:
        return None
    length = record.length
    if alignment.matched != length or length >= len(alignment.items):
        return None
    answer, stats = alignment.items[length], record.stats
    is_old = answer.key.address in chat.log.known
    if answer.usage is None or is_old:
        return None
    is_other = answer.model != record.model.name
    if is_other and (model is None or answer.model != model.name):
        return None
    usage = answer.usage
    calibrator.learn(answer.model, counted_chars(stats), usage.total - stats.image_tokens)
    counts = usage.read, usage.written, usage.fresh
    return ReportedUsage(record.ordinal, *counts, model.called if is_other and model else None)


def unpriced(workspace: Workspace, chat: Chat) -> str | None:
    """Tells once per store that a model has no prices."""
    record = chat.branch_record
    model = record.model if record else CalledModel()
    name = model.name
    if not model.guessed or workspace.head(calibration_id(name)) is not None:
        return None
    if chat.log.models[name] > 1:
        return None
    return (
        f"No prices are known of {name}: a token read from its cache counts {model.read:g}, a "
        f"written one {model.write:g} of an input token."
    )


_SEALS = re.compile(
    r"encrypted[ _-]?(?:content|reasoning)|thought[ _-]?signature|reasoning|thinking|signature",
    re.IGNORECASE,
)

_OTHER_CAUSE = re.compile(
    r"""
      \bmissing\b | \bwithout\ its\b | required\ following | must\ be\ followed | not\ found
    | organi[sz]ation | \bproject\b | \bapi[ _-]?key | \baccount | \bdeployment | \brout(?:e|ing)\b
    | (?:another|different|other)\ (?:model|provider|key|region)
    | unsupported | not\ support | unknown\ parameter | \beffort\b | \bbudget
    | \bquota | rate[ _-]?limit | overloaded | tim(?:ed|e)[ -]?out
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Refusals whose cause is not changed bytes."""


def seal_rule(
    workspace: Workspace, chat: Chat, alignment: Alignment, model: Model | None, *, within: bool
) -> SealRule:
    """`within`: whether the user allows rewriting a turn with sealed reasoning."""
    if not within or model is None or binds_by_table(model.api, model.name):
        return SealRule()
    if has_refused(workspace, model.name):
        return SealRule()
    record, new = chat.branch_record, alignment.items[alignment.matched :]
    goes_on = record is not None and all(item.kind != "user" for item in new)
    return SealRule(free=record is None or not goes_on or record.free_seals)


def learn_bindings(workspace: Workspace, session: str, chat: Chat, request: Request) -> str | None:
    message = None
    for outcome in request.outcomes:
        record = chat.log.record(call_id(session, outcome.call)) if outcome.call else None
        name = record.model.name if record and outcome.bound else ""
        if name and not binds_in_every_turn(name) and not _loses(workspace, name):
            lesson = ReasoningDocument(
                id=reasoning_id(name), model=name, binds=True, every_turn=True
            )
            workspace.put(lesson.seal())
            message = (
                f"{name} drops reasoning behind bytes that have changed. From now on foredeck "
                "counts that as a price of folding."
            )
    model = request.model
    if model is not None and not model.is_bound and _loses(workspace, model.name):
        request.model = replace(model, bound=True)
    return message


def _loses(workspace: Workspace, model: str) -> bool:
    head = workspace.head(reasoning_id(model))
    return head is not None and bool(head.fields.get("every_turn"))


def has_refused(workspace: Workspace, model: str) -> bool:
    """Whether a model (`provider/id`) refuses changed bytes before its reasoning."""
    head = workspace.head(reasoning_id(model))
    return head is not None and bool(head.fields.get("binds"))


class Refusals:
    """A provider's refusals of one session's prompts."""

    def __init__(self, objects: Objects, chat: Chat, inbox: Inbox) -> None:
        self._objects, self._chat, self._inbox = objects, chat, inbox
        self._went_back_to = ""

    def take(self, message: str) -> bool:
        """Takes a refusal; returns whether to repeat the call with the last answered prompt."""
        chat, workspace, user = self._chat, self._objects.workspace, self._inbox.user_messages
        record = chat.branch_record
        if record is None or record.is_host or not is_about_seals(message):
            return False
        before = chat.log.record(record.parent)
        if before is None:
            return False
        if self._went_back_to == before.id:
            _remember(workspace, record.model.name, binds=False)
            user.append(_not_the_reason(record.model.name))
            return False
        if not _changed_before_seals(chat.branch, record):
            return False
        _remember(workspace, record.model.name, binds=True)
        user.append(_learned(record.model.name))
        self._go_back(record, before)
        return True

    def _go_back(self, refused: CallRecord, before: CallRecord) -> None:
        chat, inbox = self._chat, self._inbox
        state = chat.replay(before.id)
        items = chat.branch.plan.items[: min(len(state.keys), refused.shared)]
        state.cut(len(items))
        chat.log.unsend(refused.id)
        inbox.refused.append(refused.ordinal)
        inbox.notices.restore()
        chat.branch = Branch.restore(state, items, before.id, chat.store)
        self._went_back_to = before.id


def is_about_seals(message: str) -> bool:
    """Whether a refusal names reasoning or signature, and no other cause."""
    return bool(_SEALS.search(message)) and not _OTHER_CAUSE.search(message)


def _changed_before_seals(branch: Branch, record: CallRecord) -> bool:
    decision, plan = record.decision, branch.plan
    first = record.changed_from if decision.changed_from is None else decision.changed_from
    seals = plan.seals
    return any(
        item.signed and not item.unsent and not seals.binds(item)
        for item in plan.items[first + 1 :]
        if item.turn == plan.turn
    )


def _remember(workspace: Workspace, model: str, *, binds: bool) -> None:
    workspace.put(ReasoningDocument(id=reasoning_id(model), model=model, binds=binds).seal())
    workspace.commit()


def _learned(model: str) -> str:
    return (
        f"{model} refused a prompt in which content before its sealed reasoning had folded. That "
        "content goes out again, and from now on its turns fold only once they have ended."
    )


def _not_the_reason(model: str) -> str:
    return (
        f"{model} refuses the prompt with all of its old content, too. Folding was not the reason, "
        "so its turns go on folding."
    )
