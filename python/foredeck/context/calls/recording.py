"""Call records, with all that must never be computed again, and answers made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from foredeck.context.calls.call import CallInProgress
from foredeck.context.calls.costs import CallCosts, predict_cache
from foredeck.context.calls.feedback import reasoning_left_out
from foredeck.context.intake.take_in import take_in
from foredeck.context.messages.items import Item
from foredeck.context.plan.codec import pack_op, pack_says
from foredeck.context.plan.wires import repair
from foredeck.context.policies.uses import PolicyRun
from foredeck.context.state.call_log import CallLog, spent_after
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.objects import SessionInfo, Workspace
from foredeck.context.state.request import Answer, Outcome, PromptFrame
from foredeck.context.state.session import Session
from foredeck.model.call_values import (
    ADOPTED,
    NO_PREDICTION,
    REWRITTEN,
    Ack,
    CachePrediction,
    CalledModel,
    CallStats,
    Decision,
)
from foredeck.model.calls import NOTHING_LOST, CallDocument, CallRecord, LostReasoning, LostSum
from foredeck.model.figures import counted
from foredeck.model.records import SAME_TRANSACTION, VersionRef, call_id


def record_host_calls(call: CallInProgress) -> None:
    """Records the list's calls that went out without foredeck, and moves `first_new` and
    `first_changed_say`."""
    session, alignment = call.session, call.alignment
    for outcome in alignment.without_us:
        if outcome.messages < call.first_new:
            continue
        items, turn_fields = call.items[: outcome.messages], call.facilities.turn_fields
        take_in(
            call.context, session.inbox, call.layout, items, call.first_new, turn_fields=turn_fields
        )
        call.first_new = outcome.messages
        call.first_changed_say = min(call.first_changed_say, outcome.edited)
        if outcome.reason == ADOPTED:
            session.inbox.user_messages.append(adoption_report(call.items))
        _record_host_call(call, outcome)
        call.start_rendering()
        call.said_before = dict(call.context.plan.says)
    call.first_changed_say = min(call.first_new, call.first_changed_say)
    if not alignment.continued:
        # A call that went out without us may have left the list with holes.
        lacks = call.context.plan.lacks(repair(call.items))
        call.first_changed_say = min([call.first_changed_say, *lacks])


def repeated_record(call: CallInProgress) -> CallRecord | None:
    """The previous record, if the same list goes to the same model."""
    record, model = call.session.chat.branch_record, call.request.model
    if record is None or record.is_host or record.layout != call.layout.name:
        return None
    if not record.length == call.first_new == len(call.items):
        return None
    return None if model is not None and record.model.name != model.name else record


ACKNOWLEDGED = ("applied", "aborted")


def record_call(call: CallInProgress, costs: CallCosts, policy: PolicyRun) -> CallRecord:
    """Commits the record of a call that goes out as decided."""
    session, request, inbox = call.session, call.request, call.session.inbox
    lost, withheld = reasoning_left_out(call)
    reported = [outcome for outcome in request.outcomes if outcome.call]
    acks = [Ack(o.call or 0, o.kind) for o in reported if o.kind in ACKNOWLEDGED]
    # One that was rewritten comes once more.
    applied = [o for o in reported if o.kind == "applied"]
    acks += [Ack(o.call or 0, REWRITTEN, o.reason) for o in applied if o.reason]
    record = _commit(
        call,
        changed=sorted(call.context.changed | call.context.attributed),
        changed_from=call.first_changed_say,
        decision=call.decision,
        time_ms=request.time_ms,
        model=request.model.called if request.model else CalledModel(),
        layout=call.layout.name,
        stats=_stats(session, session.frame.chars, call.gauge)._replace(
            shorter_by=call.shorter_by, withheld=withheld
        ),
        acks=acks + [Ack(ordinal, "refused") for ordinal in inbox.refused],
        cache=predict_cache(call, costs, policy, withheld),
        lost=lost,
    )
    inbox.refused.clear()
    return record


def _record_host_call(call: CallInProgress, outcome: Outcome) -> None:
    """Records a call without foredeck: from `edited` on as the host has it."""
    session, chat = call.session, call.session.chat
    plan, matched, before = chat.branch.plan, chat.branch.matched, chat.branch_record
    # An answer of our own tools needs a row of its own: without one, whoever reads the record takes
    # it for what it was before.
    ops = plan.ops[outcome.edited :]
    notes = {i for i, op in enumerate(ops, outcome.edited) if op.form == "note" and op.blocks}
    # With `ending`, what we put behind the last edited message has gone out, too.
    plan.as_host(outcome.edited, outcome.edited + outcome.ending)
    _commit(
        call,
        changed=sorted(notes.union(i for i in range(matched, len(plan)) if plan.ops[i].subject)),
        changed_from=min(matched, outcome.edited),
        decision=Decision("host", outcome.reason or outcome.kind, edited=outcome.edited),
        time_ms=outcome.time_ms,
        model=chat.log.last.model if chat.log.last else CalledModel(),
        layout=before.layout if before else call.layout.name,
        # Nothing is known of what stood around the messages, nor of the model that was called.
        stats=_stats(session, 0, Gauge()),
        acks=_unsent(session.info, chat.log, outcome),
    )


def _commit(
    call: CallInProgress,
    *,
    changed: list[int],
    changed_from: int,
    decision: Decision,
    time_ms: int,
    model: CalledModel,
    layout: str,
    stats: CallStats,
    acks: list[Ack],
    cache: CachePrediction = NO_PREDICTION,
    lost: LostReasoning = NOTHING_LOST,
) -> CallRecord:
    """Commits a record of the current branch.

    From `changed_from` on, it holds all says and omissions.
    """
    session, chat, workspace = call.session, call.session.chat, call.session.objects.workspace
    branch, plan, info = chat.branch, chat.branch.plan, session.info
    # Packing and popping change what they read: long texts join `workspace.blobs`, changes count
    # as recorded. If the commit fails, the session is forgotten and replayed from the store.
    ordinal, foldable = chat.log.newest + 1, branch.pop_candidates().to_record()
    before = LostSum() if chat.log.last is None else chat.log.last.lost_so_far
    lost_sum = before.plus(lost.sum)
    document = CallDocument(
        id=call_id(info.id, ordinal),
        session=info.id,
        ordinal=ordinal,
        parent=branch.call,
        shared=branch.matched,
        keys=[list(item.key) for item in plan.items[branch.matched :]],
        tip=plan.tip,
        ops=[pack_op(plan, index, workspace.blobs).to_row() for index in changed],
        changed_from=changed_from,
        says=[
            [index, pack_says(says, workspace.blobs)]
            for index, says in sorted(plan.says.items())
            if index >= changed_from
        ],
        omitted=plan.omitted(changed_from),
        system=_system_version(workspace, session.frame),
        sets=branch.sets.pop_changes()._replace(released=branch.pop_released()).to_record(),
        state={
            "policy": dict(branch.policy_state),
            "cost": branch.ledger.to_record(),
            "spent": [list(each) for each in spent_after(chat.log, info.id, model, cache, acks)],
            **({"lost": list(lost_sum)} if lost_sum else {}),
            **({} if plan.head is None else {"head": plan.head.head_tokens}),
            **({"reasoning": "free"} if plan.seals.free else {}),
        },
        foldable={sign: [[*spot] for spot in spots] for sign, spots in foldable.items()},
        decision=decision.to_record(),
        time_ms=time_ms,
        model=model.to_record(),
        layout=layout,
        policy=call.policy.name,
        stats=stats.to_record(),
        acks=[ack.to_row() for ack in acks],
        cache=cache.to_record(),
        lost=lost.to_record(),
    ).seal()
    # `new`: of two processes on one session, the slower must not write over an ordinal that the
    # faster has given out. It gets a `Conflict`, and asks the host for the whole list.
    workspace.put(document, new=True)
    # With all that the new messages became, in one transaction. If the process ends before it,
    # nothing of the call is stored; if after it, the next engine finds the record and answers with
    # the same prompt (`repeated_record`).
    workspace.commit()
    record = CallRecord(document.model_dump(exclude={"content"}))
    # Only now: nothing may build on a call that the store does not have.
    chat.log.add(record)
    branch.go_on(record)
    return record


def _system_version(workspace: Workspace, frame: PromptFrame) -> VersionRef | None:
    ref = frame.version
    # The token is made by the commit, so a record in the same one cannot name it yet.
    if ref is None or ref.token != SAME_TRANSACTION or ref.object in workspace.pending:
        return ref
    head = workspace.store.head(ref.object)
    if head is not None:
        frame.version = ref.model_copy(update={"token": head.token})
    return frame.version


def _unsent(info: SessionInfo, log: CallLog, outcome: Outcome) -> list[Ack]:
    if outcome.kind == "off":
        return []
    first = info.calls_at_opening if outcome.call is None else outcome.call
    acks: list[Ack] = []
    for ordinal in range(first + 1, log.newest + 1):
        id = call_id(info.id, ordinal)
        record = log.record(id)
        if id not in log.unsent and record is not None and not record.is_host:
            acks.append(Ack(ordinal, outcome.kind))
    return acks


def _stats(session: Session, fixed_chars: int, gauge: Gauge) -> CallStats:
    branch = session.chat.branch
    plan, sets = branch.plan, branch.sets
    images, image_tokens = gauge.images(plan)
    return CallStats(
        messages=len(plan),
        chars_host=plan.chars_host + fixed_chars,
        chars_sent=plan.chars_sent + fixed_chars + plan.chars_said,
        rate=gauge.rate,
        reports=gauge.calls,
        images=images,
        image_tokens=image_tokens,
        rebase_in=branch.rebase_in,
        objects=len(session.objects.index),
        active=len(sets.active),
        pinned=len(sets.pins),
        folded=plan.folded_objects(sets.active),
    )


def answer_call(call: CallInProgress, record: CallRecord, start: int) -> Answer:
    # The host has kept what it has of the messages before `start`.
    plan, marked = call.session.chat.branch.plan, record.cache.marked
    start = start if call.alignment.continued else 0
    marker = "" if marked is None else plan.items[marked - 1].call_id
    return Answer(record.ordinal, start, list(plan.outgoing(start)), marker)


def adoption_report(messages: Sequence[Item]) -> str:
    """Tells the user what was taken in of a history, and what is missing."""
    # What the model has not answered yet is not history.
    items = _answered(messages)
    kinds = Counter(item.kind for item in items)
    with_result = {item.call_id for item in items if item.kind == "result"}
    called = {call.id for item in items if not item.unsent for call in item.calls}
    sentences = [
        f"foredeck has taken in {counted(len(items), 'message')} and "
        f"{counted(kinds['result'], 'tool result')} from before it was on."
    ]
    if kinds["result"]:
        sentences.append("Of files it knows what they hold now, not what they held then.")
    lost, stray = len(called - with_result), len(with_result - called)
    if lost:
        sentences.append(f"{counted(lost, 'tool call')} had no result in the session file.")
    if stray:
        sentences.append(f"{counted(stray, 'result')} had no tool call there, and cannot be sent.")
    if kinds["opaque"]:
        sentences.append(
            f"{counted(kinds['opaque'], 'message')} of other kinds went by as they are."
        )
    return " ".join(sentences)


def _answered(items: Sequence[Item]) -> Sequence[Item]:
    length = len(items)
    while length and items[length - 1].kind in ("user", "context"):
        length -= 1
    return items[:length]


def damage_report(count: int) -> str:
    """How many lines of a session file are unreadable."""
    were, they = ("was", "it") if count == 1 else ("were", "they")
    return (
        f"{counted(count, 'line')} of the session file {were} cut off or damaged: what {they} held "
        "is lost."
    )
