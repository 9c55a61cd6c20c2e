"""`/foredeck why`: why the prompt is as it is."""

from __future__ import annotations

from collections.abc import Iterator

from foredeck.context.intake.toolcalls import decision_in
from foredeck.context.plan.ops import PieceRef
from foredeck.context.policies.policy import Policy
from foredeck.context.policies.uses import Uses
from foredeck.context.rebase import may_change
from foredeck.context.state.chat import Branch, Chat, by_summary
from foredeck.context.state.gauge import weighed
from foredeck.context.state.handles import Wanted, resolve_name
from foredeck.context.state.objects import Objects
from foredeck.context.tools.listing import NOT_KNOWN, state_of
from foredeck.context.tools.versions import wanted_content
from foredeck.context.wording import handle
from foredeck.model.call_values import CHARS_PER_TOKEN, REASONS, OpRow
from foredeck.model.calls import CallRecord
from foredeck.model.documents import Fields
from foredeck.model.figures import counted, money, short_count
from foredeck.model.records import call_id
from foredeck.sources.snapshots import is_unread

WEIGHED: dict[str, str] = {
    "carrying_cost": "sending what was no longer used has cost {} input tokens",
    "rewrite_cost": "rewriting what follows costs {} more",
    "reasoning_cost": "the reasoning that is lost has cost {}",
    "saves": "from then on each call is {} tokens shorter",
}
"""What a decision weighed, in tokens of uncached input."""

BOUND_TURN = (
    "a new turn began: the last chance before its reasoning binds, so {:.0%} of the cost was enough"
)
BINDS = "reasoning of this turn binds it until the turn ends"

VERBOSE = "--verbose"


def why(objects: Objects, chat: Chat, arguments: str, policy: Policy, uses: Uses) -> str:
    """Why an object is in view or folded; without one, the newest decisions. `--verbose` adds what
    was weighed."""
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
    plan, sets = chat.branch.plan, chat.branch.sets
    holder = plan.newest_holder(ordinal)
    if holder is None:
        return _gone(objects, chat, ordinal, policy)
    if ordinal in sets.pins:
        return "It is pinned, so it never folds."
    if holder > plan.last_assistant():
        return "It came with the newest call, and stays at least until the next."
    branch = chat.branch
    ages = (at for ref, at in branch.candidates.items() if ref.message == holder)
    since = min(ages, default=None)
    is_wanted = ordinal in sets.active and holder in branch.kept
    rule = "" if is_wanted else _given_up(objects, chat, ordinal, holder, policy)
    if since is None:
        if is_wanted:
            return f"Policy {policy.name} keeps it{_used(policy, uses, holder)}."
        if rule:
            return f"It was {rule}, but does not fold yet."
        return "It was deactivated since the last call, and may fold from the next on."
    if is_wanted:
        gives = f"policy {policy.name} gives it up{_used(policy, uses, holder)}"
        cause = f"It may fold since call {since} of this branch: {gives}"
    else:
        cause = f"It was {rule or 'deactivated since the last call'}"
    bound = "" if may_change(plan, [holder]) else f"; {BINDS}"
    when = f"when the prompt is next rewritten from message {holder + 1} or before"
    return f"{cause}. It folds {when}{bound}."


def _given_up(
    objects: Objects, chat: Chat, ordinal: int, index: int, policy: Policy, before: str = ""
) -> str:
    """Who released message `index`, and at which call."""
    note = ""
    for record in chat.chain(chat.branch.call):
        if record.id == before:
            break
        sets = record.sets
        if ordinal in sets.active.added:
            note = ""
        if note:
            continue
        if index in sets.released.added:
            turn = _turn_began(chat, record)
            note = f"given up by policy {policy.name} at call {record.ordinal}{turn}"
        elif ordinal in sets.active.removed:
            who = "the model" if _by_model(objects, chat, ordinal) else "you"
            note = f"deactivated by {who} at call {record.ordinal}"
    return note


def _turn_began(chat: Chat, record: CallRecord) -> str:
    """Whether a turn began at a call, as a clause: what it has not used is given up sooner."""
    newest = chat.branch.plan.items[record.length - 1 : record.length]
    return " when a new turn began" if newest and newest[0].kind == "user" else ""


def _by_model(objects: Objects, chat: Chat, ordinal: int) -> bool:
    decisions = (decision_in(objects, i) for i in chat.branch.plan.items if i.kind == "result")
    return any(
        outcome is not None
        and outcome[0].ordinal == ordinal
        and outcome[1].get("op") == "deactivate"
        for outcome in decisions
    )


def _cost_to_keep(chat: Chat, ordinal: int, since: CallRecord) -> str:
    plan, chain = chat.branch.plan, chat.chain(chat.branch.call)
    pairs = zip(plan.ops, plan.items, strict=True)
    chars = max((i.chars for op, i in pairs if op.subject == ordinal and op.carries), default=0)
    calls = sum(record.ordinal >= since.ordinal for record in chain)
    model, stats = since.model, since.stats
    tokens = int(chars / (stats.rate or CHARS_PER_TOKEN))
    if not tokens:
        return ""
    read = tokens * calls * model.read
    price = model.input_price
    cost = money(read * price / 1_000_000) if price else f"{short_count(read)} input tokens"
    what = f"its {short_count(tokens)} tokens for {counted(calls, 'call')}"
    return f" Keeping {what} would have cost {cost}."


def _used(policy: Policy, uses: Uses, holder: int) -> str:
    if policy.rules is None:
        return ""
    refs = [ref for ref in uses.foldable if ref.message == holder] or [PieceRef(holder)]
    return f", last used {counted(uses.age(refs[0]), 'call')} ago"


def _gone(objects: Objects, chat: Chat, ordinal: int, policy: Policy) -> str:
    if ordinal in chat.branch.sets.waiting:
        return f"It is pinned, but had to leave the prompt. activate @{ordinal} brings it back."
    if (left := _left_at(chat, ordinal)) is not None:
        record, row, is_folded = left
        rule = _given_up(objects, chat, ordinal, row.message, policy, before=record.id)
        rule = rule or _could_go(chat, row.message, record)
        how = "folded" if is_folded else "left with the chat around it"
        was = f"was {rule}, and " if rule else "was " if is_folded else ""
        return (
            f"It {was}{how} at call {record.ordinal}{because(record)}."
            f"{_cost_to_keep(chat, ordinal, record)} activate @{ordinal} brings it back."
        )
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


def _left_at(chat: Chat, ordinal: int) -> tuple[CallRecord, OpRow, bool] | None:
    """The call, the message, and whether it folded."""
    runs, left = chat.branch.plan.runs, None
    for record in reversed(chat.chain(chat.branch.call)):
        for row in reversed(record.ops):
            if row.subject != ordinal or (left is not None and row.message != left[1].message):
                continue
            if row.form in ("reference", "folded"):
                return record, row, True
            if not row.is_gone:
                if left is not None:
                    return left
                continue
            in_run = any(run.first <= row.message < run.until for run in runs)
            left = record, row, in_run
            # A run may have taken the line that an earlier fold had left.
            if not in_run:
                return left
    return left


def _could_go(chat: Chat, index: int, last: CallRecord) -> str:
    # Pieces of texts have slots of their own; long ones of the user's fold under any policy.
    since, result = None, [index, 0]
    for record in chat.chain(chat.branch.call):
        spots = record.foldable
        if result in map(list, spots.added):
            since = since or record
        elif result in map(list, spots.removed):
            since = None
        if record.id == last.id:
            break
    if since is None:
        return ""
    at = f" at call {since.ordinal}" if since.ordinal < last.ordinal else ""
    return f"given up by policy {last.policy}{at}{_turn_began(chat, since)}"


def _compactions_in_view(chat: Chat) -> Iterator[Fields]:
    # The call records of the messages that they cover are on another branch.
    items = chat.branch.plan.items
    texts = [item.blocks[0].get("text") for item in items if item.kind == "context" and item.blocks]
    ids = [by_summary(chat.compactions, str(text)) for text in reversed(texts)]
    for id in ids:
        while id is not None and (fields := chat.compactions.get(id)) is not None:
            yield fields
            id = fields.get("previous")


def _was_shown(chat: Chat, ordinal: int, call: int) -> bool:
    chain = chat.chain(call_id(chat.info.id, call))
    return any(row.subject == ordinal for record in chain for row in record.ops)


def _decisions(chat: Chat, *, verbose: bool) -> list[str]:
    """The newest call, and the rebase before it."""
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
        candidates = {ref.message for ref in chat.branch.candidates}
        if candidates and not may_change(chat.branch.plan, candidates):
            lines.append(f"What could fold stays for now: {BINDS}.")
        elif wait:
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
                tokens = short_count(record.lost.tokens)
                blocks = counted(left_out, "block")
                what += f", and {blocks} of reasoning (about {tokens} tokens) left out"
        case "host":
            return f"Call {record.ordinal}: went out {decision.host_words}."
        case _:
            what = "added to; what was sent before stays as it was"
    return f"Call {record.ordinal}: {what}{because(record, verbose=verbose)}."


def because(record: CallRecord, *, verbose: bool = False) -> str:
    """A decision's reason as a clause, or empty; `verbose` adds what was weighed."""
    words = reason_words(record, verbose=verbose)
    return f" because {words}" if words else ""


def reason_words(record: CallRecord, *, verbose: bool = False) -> str:
    decision = record.decision
    if not decision.reason:
        return ""
    counts = weighed(record)
    clauses = [REASONS.get(decision.reason, decision.reason)]
    if decision.factor is not None:
        clauses.append(BOUND_TURN.format(decision.factor))
    clauses += [
        text.format(short_count(tokens))
        for name, text in WEIGHED.items()
        if (tokens := counts.get(name)) and (verbose or name == "saves")
    ]
    return "; ".join(clauses)
