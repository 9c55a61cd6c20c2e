"""What must hold for every prompt that goes out by the engine's word."""

from __future__ import annotations

import json
from copy import copy
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING
from unittest.mock import patch

from context.sent import Sent, as_bytes, as_values, common, message_text
from foredeck.context import rendering
from foredeck.context.calls.call import rendering_of
from foredeck.context.messages.items import value_chars
from foredeck.context.messages.shape import Message, find_faults, to_item
from foredeck.context.plan.wires import Wire
from foredeck.context.policies.uses import Uses
from foredeck.context.rendering import PromptNames
from foredeck.context.rewriting.folding import FoldFinder
from foredeck.context.rewriting.refreshing import RefreshFinder
from foredeck.context.state.gauge import Gauge
from foredeck.lookup.prompts import Prompt
from foredeck.model.names import identifiers

if TYPE_CHECKING:
    from context.driver import Host

ELSEWHERE = ("Unchanged: ", ", changed since the copy above:\n", " is not text: ")
"""In lines of ours that stand for a content which is in view, or which nobody could read."""

CALLS_CHANGE = Wire(arguments=True)

CUT = " characters do not fit here: "
PUT_AWAY = ", summed up without a model."
STANDS_IN = "), not the user's words. activate "


_identifiers = lru_cache(10_000)(identifiers)
"""The texts of a session are looked through at each of its calls."""


class _NotStored:
    """Takes the place of a store where only the figures of a message are wanted."""

    def store(self, _message: Message, _blobs: dict[str, bytes]) -> str:
        return ""


def check(host: Host, sent: Sent, shown: Prompt) -> None:
    """Every rule that needs no knowledge of the case at hand; `shown`: the call as stored."""
    faults = find_faults(sent.prompt)
    assert not faults, faults
    _own_blocks_have_text(sent)
    _users_text_stands(sent)
    _store_shows_what_was_sent(host, sent, shown)
    _figures_are_true(host, sent)
    _handles_stay(host)
    _sets_are_within_each_other(host)
    _what_is_kept_is_true(host)
    if sent.record.policy == "seed-window":
        _answers_stand(sent)
    anchored = sent.record.layout == "anchored"
    if anchored:
        _sent_bytes_stand(host, sent)
        _pins_stay(host, sent)
    _results_in_flight_are_whole(sent, anchored)


def _what_is_kept_is_true(host: Host) -> None:
    """Whatever is kept from call to call equals what the whole list says."""
    assembler = host.opened.assembler
    uses = assembler.finders.uses
    context = rendering_of(host.state, assembler.config, Gauge(), uses.names)
    branch, plan = host.state.chat.branch, host.state.chat.branch.plan
    going_out = {
        (index, block)
        for index, block in branch.lost
        if index < len(plan) and not plan.ops[index].leaves_out(block)
    }
    # Of a copy: what is left to follow stays for the next call.
    assert copy(branch).lost_in_prompt() == going_out
    for index, chars in enumerate([0, *accumulate(plan.chars)]):
        assert plan.chars_before(index) == chars
    assert plan.places == {item.key.address: index for index, item in enumerate(plan.items)}
    active = branch.sets.active
    assert plan.folded_objects(active) == len(plan.carried.keys() - plan.holders.keys() - active)
    uses.follow(plan)
    wanted = uses.foldable.keys()
    assert assembler.finders.folds.find(context, wanted) == FoldFinder().find(context, wanted)
    with patch.object(rendering, "identifiers", _identifiers):
        assert context.names.in_view(plan, ()) == PromptNames().in_view(plan, ())
    if assembler.policy.rules is not None:
        fresh = Uses(host.state.info.cwd, uses.rules)
        fresh.follow(plan)
        assert uses.foldable == fresh.foldable
        known, anew = assembler.finders.refreshes, RefreshFinder()
        found = [each.find(context, uses, (), CALLS_CHANGE) for each in (known, anew)]
        assert found[0] == found[1]


def _own_blocks_have_text(sent: Sent) -> None:
    """Providers refuse an empty text, and a message without content."""
    for message, part in zip(sent.messages, sent.parts, strict=False):
        for ours in part:
            if ours is message:
                continue
            assert ours["content"], f"no content in {ours}"
            for block in ours["content"]:
                assert block.get("type") != "text" or block["text"], f"an empty text in {ours}"


def _users_text_stands(sent: Sent) -> None:
    for message, part in zip(sent.messages, sent.parts, strict=False):
        if message.get("role") != "user" or is_cut(part):
            continue
        (out,) = [m for m in part if m.get("timestamp") == message.get("timestamp")][-1:]
        own = [t for t in _texts(message) if t]
        assert _texts(out)[: len(own)] == own


def is_cut(part: list[Message]) -> bool:
    """Whether a message was put away or shortened, since the context window is too small."""
    texts = [text for message in part for text in _texts(message)]
    folded = any("chars folded>" in json.dumps(message) for message in part)
    marks = (CUT, PUT_AWAY, STANDS_IN)
    return folded or not part or any(mark in text for mark in marks for text in texts)


def _texts(message: Message) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content] if content else []
    return [b["text"] for b in content or () if b.get("type") == "text" and b.get("text")]


def _store_shows_what_was_sent(host: Host, sent: Sent, shown: Prompt) -> None:
    assert as_values(shown.messages) == as_values(sent.prompt)
    assert (shown.system, shown.tools) == (host.system, host.tools)


def _figures_are_true(host: Host, sent: Sent) -> None:
    texts = filter(None, map(message_text, host.system))
    around = len("\n\n".join(texts)) + value_chars(host.tools)
    assert sent.stats.chars_sent == around + sum(_chars(host, m) for m in sent.prompt)
    assert sent.stats.chars_host == around + sum(_chars(host, m) for m in sent.messages)
    assert sent.stats.messages == len(sent.messages)


def _chars(host: Host, message: Message) -> int:
    known = host.past.chars
    if id(message) not in known:
        known[id(message)] = message, to_item(message, None, {}, _NotStored()).chars
    return known[id(message)][1]


def _handles_stay(host: Host) -> None:
    """The index only grows, and a handle means one object for ever."""
    index = {ordinal: entry.object for ordinal, entry in host.state.objects.index.entries.items()}
    assert sorted(index) == list(range(1, len(index) + 1))
    assert host.past.handles.items() <= index.items()
    host.past.handles = index


def _sets_are_within_each_other(host: Host) -> None:
    """And all members are in the index."""
    sets = host.state.chat.branch.sets
    assert sets.pinned <= sets.active <= sets.pool <= host.state.objects.index.entries.keys()
    assert sets.pins <= host.state.objects.index.entries.keys()


def _sent_bytes_stand(host: Host, sent: Sent) -> None:
    """Before a rebase's position, what was sent for the longest known beginning goes out again.

    After a change of branch more than one earlier prompt may share that beginning; one of them
    must go on. What the host sent on its own and a provider would refuse binds nobody.
    """
    earlier = host.past.sent
    if not earlier:
        return
    shared = [common(old.messages, sent.messages) for old in earlier]
    longest = max(shared)
    changed_from = sent.decision.changed_from
    limit = longest if changed_from is None else min(longest, changed_from)
    candidates = [old for old, count in zip(earlier, shared, strict=True) if count == longest]
    new = sent.parts_as_bytes[:limit]
    if any(old.call is None and find_faults(old.prompt) for old in candidates):
        return
    assert any(old.parts_as_bytes[:limit] == new for old in candidates), _difference(
        candidates[-1], sent, limit
    )


def _difference(old: Sent, new: Sent, limit: int) -> str:
    found = [
        f"message {index}:\n  {as_bytes(a)}\n  {as_bytes(b)}"
        for index, (a, b) in enumerate(zip(old.parts[:limit], new.parts[:limit], strict=True))
        if as_bytes(a) != as_bytes(b)
    ]
    return f"sent bytes changed ({new.decision}):\n" + "\n".join(found)


def _answers_stand(sent: Sent) -> None:
    """What the model has said goes out as it was; of sealed reasoning all or nothing."""
    for message, part in zip(sent.messages, sent.parts, strict=False):
        if message.get("role") == "assistant" and not is_cut(part) and part[-1] is not message:
            said = [block for block in message["content"] if block["type"] != "thinking"]
            assert part[-1] == {**message, "content": said}


def _results_in_flight_are_whole(sent: Sent, anchored: bool) -> None:
    """What the model has asked for last is there, or is said to stand elsewhere.

    Where the host goes back into a turn that is long over, what was sent then is sent again.
    """
    for index in range(len(sent.messages) - 1, sent.record.shared - 1, -1):
        message = sent.messages[index]
        stop = message.get("stopReason")
        if message.get("role") == "assistant" and stop not in ("error", "aborted"):
            return
        answers = message.get("role") == "toolResult" and message.get("toolCallId")
        if answers and any(part.get("toolCallId") == answers for part in sent.parts[index]):
            assert _is_whole(sent, index, anchored), sent.text(index)


def _is_whole(sent: Sent, index: int, anchored: bool) -> bool:
    said = sent.text(index)
    if any(word in said for word in (*ELSEWHERE, CUT)):
        return True
    message = sent.messages[index]
    if anchored:
        return all(text in said for text in _texts(message))
    # A file stands as it is now, which a later call of the same message may have changed.
    elsewhere = "\n".join(map(message_text, sent.parts[-1]))
    return message["toolName"] == "read" or all(
        text in said or text in elsewhere for text in _texts(message)
    )


def _pins_stay(host: Host, sent: Sent) -> None:
    """A pinned object's content is folded only where a later message shows the object."""
    plan, pinned = host.state.chat.branch.plan, host.state.chat.branch.sets.pins
    for row in sent.record.ops:
        if row.form == "reference" and row.subject in pinned:
            newest = plan.newest_holder(row.subject)
            assert newest is not None
            assert newest > row.message
