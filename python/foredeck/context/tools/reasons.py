"""Why the prompt is as it is, in words for the user: `/foredeck why`."""

from __future__ import annotations

from collections.abc import Iterator

from foredeck.context.plan.ops import PieceRef
from foredeck.context.policies.policy import Policy
from foredeck.context.policies.uses import Uses
from foredeck.context.state.chat import Branch, Chat, by_summary
from foredeck.context.state.handles import Wanted, resolve_name
from foredeck.context.state.objects import Objects
from foredeck.context.tools.listing import NOT_KNOWN, state_of
from foredeck.context.tools.versions import wanted_content
from foredeck.context.wording import handle
from foredeck.model.call_values import CHARS_PER_TOKEN, REASONS
from foredeck.model.calls import CallRecord
from foredeck.model.documents import Fields
from foredeck.model.figures import counted, short_tokens
from foredeck.model.records import call_id
from foredeck.sources.snapshots import is_unread

WEIGHED: dict[str, str] = {
    "carrying_cost": "sending what was no longer used has cost {} input tokens",
    "rewrite_cost": "rewriting what follows costs {} more",
    "saves": "from then on each call is {} tokens shorter",
    "copies": "one current copy of each file at work takes {} tokens",
    "replaced": "in place of {} tokens of reads and edits",
}
"""What a decision weighed. Costs are in tokens of uncached input."""

VERBOSE = "--verbose"


def why(objects: Objects, chat: Chat, arguments: str, policy: Policy, uses: Uses) -> str:
    """Of an object: why its content is in view or folded. Of nothing: the newest decisions, with
    what was weighed where `--verbose` asks for it."""
    object, verbose = arguments.removesuffix(VERBOSE).strip(), arguments.endswith(VERBOSE)
    if object:
        entry = resolve_name(objects, object).entry
        ordinal = entry.ordinal
        is_shown = chat.branch.plan.newest_holder(ordinal) is not None
        if objects.info.is_always_in_view(entry.object) and not is_shown:
            return f"{handle(ordinal)} is always in view: it is the {entry.type} of this session."
        return "\n".join(
            [_where(chat.branch, ordinal), _rule(objects, chat, ordinal, policy, uses)]
        )
    nothing = NOT_KNOWN if chat.log.newest else "No call has been made yet."
    return "\n".join(_decisions(chat, verbose=verbose)) or nothing


def _where(branch: Branch, ordinal: int) -> str:
    plan = branch.plan
    holder = plan.newest_holder(ordinal)
    state = state_of(branch, ordinal)
    if holder is None:
        return f"@{ordinal} is {state}."
    return f"@{ordinal} is {state}: message {holder + 1} of {len(plan)} shows it."


def _rule(objects: Objects, chat: Chat, ordinal: int, policy: Policy, uses: Uses) -> str:
    """The rule that holds for an object now."""
    plan, sets = chat.branch.plan, chat.branch.sets
    holder = plan.newest_holder(ordinal)
    if holder is None:
        return _gone(objects, chat, ordinal)
    if ordinal in sets.pins:
        return "It is pinned, so it never folds."
    if holder > plan.last_assistant():
        return "It came with the newest call, and stays at least until the next."
    branch = chat.branch
    ages = (at for ref, at in branch.candidates.items() if ref.message == holder)
    since = min(ages, default=None)
    if since is None:
        return f"Policy {policy.name} keeps it{_used(policy, uses, holder)}."
    if ordinal not in sets.active or holder not in branch.kept:
        cause = f"it was deactivated, or policy {policy.name} has given it up"
    else:
        cause = f"policy {policy.name} gives it up{_used(policy, uses, holder)}"
    when = "It folds when the prompt is next rewritten."
    return f"It may fold since call {since} of this branch: {cause}. {when}"


def _used(policy: Policy, uses: Uses, holder: int) -> str:
    if policy.use_rule is None:
        return ""
    refs = [ref for ref in uses.foldable if ref.message == holder] or [PieceRef(holder)]
    return f", last used {counted(uses.age(refs[0]), 'call')} ago"


def _gone(objects: Objects, chat: Chat, ordinal: int) -> str:
    """When an object left the prompt, or that it was never in it."""
    if ordinal in chat.branch.sets.waiting:
        return f"It is pinned, but had to leave the prompt. activate @{ordinal} brings it back."
    for record in reversed(chat.chain(chat.branch.call)):
        for row in record.ops:
            if row.subject == ordinal and row.is_gone:
                at = f"call {record.ordinal}{_reason(record)}"
                return (
                    f"It left with the chat around it at {at}. activate @{ordinal} brings it back."
                )
            if row.subject == ordinal and row.form in ("reference", "folded"):
                at = f"call {record.ordinal}{_reason(record)}"
                return f"It was folded at {at}. activate @{ordinal} brings it back."
    for compaction in _compactions_in_view(chat):
        if _was_shown(chat, ordinal, compaction["call"]):
            name = handle(objects.index.by_object[compaction["id"]])
            return (
                f"It left with the chat that the summary {name} replaces. "
                f"activate @{ordinal} brings it back."
            )
    never = "It was never in this branch's prompt"
    entry = objects.index.entries[ordinal]
    head = objects.workspace.head(entry.object)
    content = wanted_content(objects, chat, Wanted(entry=entry))
    # A file that is known by its name alone is read when it is activated.
    if content.why and not (head is not None and is_unread(head.fields)):
        return f"{never}, and has no content to show: {content.why}."
    return f"{never}. activate @{ordinal} brings it in."


def _compactions_in_view(chat: Chat) -> Iterator[Fields]:
    """The compactions whose summaries are in the chat, each with those before it, newest first."""
    # The call records of the messages that they cover are on another branch.
    items = chat.branch.plan.items
    texts = [item.blocks[0].get("text") for item in items if item.kind == "context" and item.blocks]
    ids = [by_summary(chat.compactions, str(text)) for text in reversed(texts)]
    for id in ids:
        while id is not None and (fields := chat.compactions.get(id)) is not None:
            yield fields
            id = fields.get("previous")


def _was_shown(chat: Chat, ordinal: int, call: int) -> bool:
    """Whether an object was in the prompts of the branch of a call, in whatever form."""
    chain = chat.chain(call_id(chat.info.id, call))
    return any(row.subject == ordinal for record in chain for row in record.ops)


def _decisions(chat: Chat, *, verbose: bool) -> list[str]:
    """The newest call, and the newest rebase before it."""
    record = chat.branch_record
    if record is None:
        return []
    lines = [_line(record, verbose=verbose)]
    lost = record.lost_so_far.text
    lost_line = [f"Lost to the model in this session: {lost}."] if lost else []
    if not record.decision.is_rebase:
        chain = reversed(chat.chain(chat.branch.call))
        last = next((each for each in chain if each.decision.is_rebase), None)
        none = "Nothing has been folded yet on this branch."
        lines.append(none if last is None else _line(last, verbose=verbose))
        wait = record.stats.rebase_in
        if wait:
            lines.append(f"Folding more pays in {counted(wait, 'call')} at the earliest.")
    return lines + lost_line


def _line(record: CallRecord, *, verbose: bool) -> str:
    decision = record.decision
    match decision.kind:
        case "rebase":
            first = (decision.changed_from or 0) + 1
            what = "the prompt was rewritten" + (f" from message {first} on" if verbose else "")
            if noted := len(decision.covers):
                count = "a part" if noted == 1 else f"{noted} parts"
                what += f", with notes in place of {count} of the chat"
            if decision.call_groups:
                count = "a run" if decision.call_groups == 1 else f"{decision.call_groups} runs"
                what += f", with one text in place of {count} of folded calls"
            if decision.turn_ended:
                what += "; for that the turn under way was ended and its reasoning left out"
            if left_out := record.lost.sum.blocks:
                tokens = short_tokens(record.lost.tokens)
                blocks = counted(left_out, "block")
                what += f", and {blocks} of reasoning (about {tokens} tokens) left out"
        case "host":
            what = "went out without foredeck"
        case _:
            what = "added to; what was sent before stays as it was"
    return f"Call {record.ordinal}: {what}{_reason(record, verbose=verbose)}."


def _reason(record: CallRecord, *, verbose: bool = False) -> str:
    """Why it was decided so, to be added to a sentence; empty for a call that needs no reason.
    `verbose`: with all that was weighed, not only what is saved."""
    decision = record.decision
    if not decision.reason:
        return ""
    # What was weighed was counted by the default rate.
    scale = CHARS_PER_TOKEN / record.stats.rate
    weighed = decision.weighed
    figures = [
        text.format(short_tokens(int(weighed[name] * scale)))
        for name, text in WEIGHED.items()
        if name in weighed and (verbose or name == "saves")
    ]
    return " because " + "; ".join([REASONS.get(decision.reason, decision.reason), *figures])
