"""What is learned of a model from how its provider took earlier prompts: their tokens as it counted
them, and a refusal because of sealed reasoning.

A turn that was begun bound stays so, whatever is configured meanwhile; a free one becomes bound at
once. A model that has refused a prompt because of such bytes is remembered in the store, for all of
its sessions.
"""

from __future__ import annotations

import re

from foredeck.context.intake.alignment import Alignment
from foredeck.context.messages.items import IMAGE_CHARS
from foredeck.context.messages.wires import SealRule, binds_by_table
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.gauge import Calibrator
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.objects import Objects, Workspace
from foredeck.context.state.request import Model
from foredeck.model.call_values import CalledModel, ReportedUsage
from foredeck.model.calls import CallRecord
from foredeck.model.records import ReasoningDocument, calibration_id, reasoning_id


def take_report(
    chat: Chat, alignment: Alignment, calibrator: Calibrator, model: Model | None
) -> ReportedUsage | None:
    """Learn from the answer to the session's newest call, where it is new here. `model`: the one
    in use now, which may have given that answer in place of the one that was expected.

    Returns what was counted of that call. Nothing is learned from a call that went out without
    us: its bytes are known, but not what stood around them.
    """
    record = chat.branch_record
    if record is None or record.is_host:
        return None
    sent = record.length
    if alignment.matched != sent or sent >= len(alignment.items):
        return None
    answer, stats = alignment.items[sent], record.stats
    known = answer.key.address in chat.log.known
    if answer.usage is None or known:
        return None
    is_other = answer.model != record.model.name
    if is_other and (model is None or answer.model != model.name):
        return None
    chars = stats.chars_sent - stats.images * IMAGE_CHARS
    usage = answer.usage
    calibrator.learn(answer.model, chars, usage.total - stats.image_tokens)
    counts = usage.read, usage.written, usage.fresh
    return ReportedUsage(record.ordinal, *counts, model.called if is_other and model else None)


def unpriced(workspace: Workspace, chat: Chat) -> str | None:
    """What to tell the user where the newest call's model has no prices: at its first call, once
    in a store. None where there is nothing to tell."""
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
"""An item that another key or route has made, one that lacks its seal or what follows it, a setting
of the request, and what has nothing to do with the prompt."""


def seal_rule(
    workspace: Workspace, chat: Chat, alignment: Alignment, model: Model | None, *, within: bool
) -> SealRule:
    """The rule for one call. `within`: whether the user wants a turn with sealed reasoning to be
    rewritten where no provider is known to refuse that."""
    if not within or model is None or binds_by_table(model.api, model.name):
        return SealRule()
    if has_refused(workspace, model.name):
        return SealRule()
    record, new = chat.branch_record, alignment.items[alignment.matched :]
    goes_on = record is not None and all(item.kind != "user" for item in new)
    return SealRule(free=record is None or not goes_on or record.free_seals)


def has_refused(workspace: Workspace, model: str) -> bool:
    """Whether a model (`provider/id`) is known to refuse changed bytes before its reasoning."""
    head = workspace.head(reasoning_id(model))
    return head is not None and bool(head.fields.get("binds"))


class Refusals:
    """What the provider's refusals of one session's prompts lead to."""

    def __init__(self, objects: Objects, chat: Chat, inbox: Inbox) -> None:
        self._objects, self._chat, self._inbox = objects, chat, inbox
        self._went_back_to = ""
        """Id of the call record whose bytes went out once more after a refusal."""

    def take(self, message: str) -> bool:
        """The provider has refused the newest call with these words. Returns whether the call is
        to be made again, with what the last answered call was sent and what is new.

        That is so where the words are about sealed reasoning, and bytes before such reasoning of
        the turn under way had changed since. The model is remembered for it; should it refuse the
        old bytes in such words too, that was not the reason, and it is forgotten.
        """
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
        """Go back to the call before, as if the refused one had never gone out."""
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
    """Whether a refusal may mean that sealed reasoning is bound to bytes that have changed: it
    names the reasoning or its signature, and no other cause that is known."""
    return bool(_SEALS.search(message)) and not _OTHER_CAUSE.search(message)


def _changed_before_seals(branch: Branch, record: CallRecord) -> bool:
    """Whether a call has changed bytes before sealed reasoning of its turn."""
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
