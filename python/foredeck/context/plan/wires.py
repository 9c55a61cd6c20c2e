"""What a provider accepts, by wire: what may change in answered messages, and a list without gaps.

On an unnamed wire nothing changes. Says fill gaps, strays are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from foredeck.context.messages.items import Item, ToolUse, text_block
from foredeck.context.plan.ops import Say
from foredeck.context.wording import history_cut, no_named_result, no_result
from foredeck.model.messages import answered_by, newest_answer


@dataclass(frozen=True, slots=True)
class Wire:
    """What a provider accepts."""

    arguments: bool = False
    """Earlier arguments may fold."""
    thinking: bool = False
    """Earlier turns' thinking may be left out."""
    between_turns: bool = False
    """Whether only at a new user message."""

    @property
    def lets_calls_change(self) -> bool:
        """Whether earlier arguments may fold at any call."""
        return self.arguments and not self.between_turns


_WIRES: dict[str, Wire] = {
    "anthropic-messages": Wire(arguments=True, thinking=True),
    "openai-completions": Wire(arguments=True, thinking=True),
    "openai-responses": Wire(arguments=True),
    "openai-codex-responses": Wire(arguments=True),
    "azure-openai-responses": Wire(arguments=True),
    "google-generative-ai": Wire(arguments=True),
    "google-gemini-cli": Wire(arguments=True),
    "google-vertex": Wire(arguments=True),
    "bedrock-converse-stream": Wire(arguments=True, thinking=True, between_turns=True),
}

_KEEPS_THINKING = frozenset({"openrouter"})


def wire_of(api: str, provider: str = "") -> Wire:
    """The wire of a model record's `api`; an unknown one allows nothing."""
    wire = _WIRES.get(api, Wire())
    if provider in _KEEPS_THINKING:
        return Wire(wire.arguments, thinking=False, between_turns=wire.between_turns)
    return wire


RESPONSES_APIS = ("openai-responses", "openai-codex-responses", "azure-openai-responses")

# Anthropic documents that in a tool loop thinking comes back in its place, in a turn that stands as
# it was; newer models compare what precedes each block. Bedrock, Vertex and routers that carry
# Claude hand on these signatures. Amazon calls the signature of a reasoning block a hash of all
# messages of the conversation. Of other wires than these here nothing is known: they bind.
_BIND_NOTHING = frozenset(
    {
        # OpenAI: reasoning items since the last user message come back with the calls that they
        # belong to. Reported refusals name the key or organization of an item, content that cannot
        # be decrypted, or an item without the one that follows.
        *RESPONSES_APIS,
        # Google: each thought signature comes back in the part in which it was received, and a call
        # of the current turn without one is refused. Reported refusals name a missing signature, or
        # one that another route or key has made.
        *("google-generative-ai", "google-gemini-cli", "google-vertex"),
        # OpenRouter: the sequence of reasoning details comes back as it was received; nothing is
        # said of the messages before it.
        "openai-completions",
    }
)
"""Bytes before sealed reasoning may change here, except for Anthropic's models."""


_BOUND_IN_EVERY_TURN = re.compile(
    r"claude-(?:fable|mythos)-5[.-][12]|claude-(?:opus|sonnet|haiku)-5[.-]5|gpt-(?:6\.[2-9]|[7-9])"
)


def binds_in_every_turn(model: str) -> bool:
    """Whether a model (`provider/id`) loses all reasoning behind a changed byte, by Anthropic's
    "Preserved thinking" and OpenAI's "Preserved reasoning"."""
    return bool(_BOUND_IN_EVERY_TURN.search(model.lower()))


def binds_by_table(api: str, model: str) -> bool:
    return "claude" in model.lower() or api not in _BIND_NOTHING or binds_in_every_turn(model)


@dataclass(frozen=True, slots=True)
class SealRule:
    """What sealed reasoning binds; by default everything."""

    free: bool = False
    """Bytes before sealed reasoning may change unless the table forbids it."""

    def binds(self, item: Item) -> bool:
        """Whether what precedes a message in its turn has to stay."""
        if not item.signed or item.unsent:
            return False
        return not self.free or binds_by_table(str(item.meta.get("api") or ""), item.model)


@dataclass(slots=True)
class Repairs:
    says: dict[int, list[Say]] = field(default_factory=dict)
    omitted: set[int] = field(default_factory=set)


def repair(items: Sequence[Item], start: int = 0) -> Repairs:
    """The repairs from index `start` on; earlier ones count as made."""
    repairs = Repairs()
    pending: list[ToolUse] = []
    strays: list[Item] = []
    has_begun = any(map(_begins, islice(items, start)))
    # From the newest answer before `start`: results of its calls may only come now.
    for index in range(max(0, newest_answer(items, start, sent=True)), len(items)):
        item = items[index]
        if item.kind == "result":
            at = answered_by([call.id for call in pending], item.call_id)
            if at is not None:
                pending.pop(at)
                continue
            if index >= start:
                repairs.omitted.add(index)
            # Also those before `start`: what was said of them is said in the same way again.
            strays.append(item)
            continue
        # No model sees it, so it does not come between a call and its result.
        if item.kind == "opaque":
            continue
        _close(pending, strays, index, start, repairs)
        if item.kind == "assistant" and not item.unsent:
            pending = list(item.calls)
            if not has_begun:
                repairs.says.setdefault(index, []).insert(0, _beginning())
        has_begun = has_begun or _begins(item)
    _close(pending, strays, len(items), start, repairs)
    if not has_begun:
        repairs.says.setdefault(len(items), []).append(_beginning())
    return repairs


def _begins(item: Item) -> bool:
    return item.kind in ("user", "context", "assistant") and not item.unsent


def _beginning() -> Say:
    return Say("list_start", [text_block(history_cut())])


def _close(
    pending: list[ToolUse], strays: list[Item], index: int, start: int, repairs: Repairs
) -> None:
    if pending and index >= start:
        content = [text_block(no_named_result() if strays else no_result())]
        if len(pending) == len(strays) == 1:
            # No other can be meant.
            content = strays[0].blocks
        repairs.says.setdefault(index, []).extend(
            Say("no_result", content, call_id=call.id, tool=call.tool) for call in pending
        )
    pending.clear()
    strays.clear()
