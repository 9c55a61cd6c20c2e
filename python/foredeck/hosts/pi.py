from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from foredeck.context.intake.toolcalls import CallPlace
from foredeck.context.messages.items import Block
from foredeck.context.messages.shape import UNSENT_STOPS, seal_of, sections_as_text, to_item
from foredeck.context.plan.wires import RESPONSES_APIS
from foredeck.context.provider_cache import rule_of
from foredeck.context.rebase import prices_of
from foredeck.context.state.request import (
    CompactionRequest,
    InlineChanges,
    Model,
    Outcome,
    Request,
    Zone,
)
from foredeck.hosts.host import CompleteReply, CompleteResult, kept_s
from foredeck.hosts.protocol import (
    AssembleParams,
    InputParams,
    JsonObject,
    ListParams,
    OutcomeParams,
    SessionCompactParams,
    ToolObservedParams,
)
from foredeck.model.call_values import PriceTier
from foredeck.model.messages import KnownMessages, text_in
from foredeck.model.observations import AskedBy
from foredeck.regular_files import open_to_read, read_regular
from foredeck.sources.snapshots import ToolEvent

log = logging.getLogger(__name__)

_COLLAPSING = frozenset(
    {"bedrock-converse-stream", "google-generative-ai", "google-vertex", "google-gemini-cli"}
)
"""These send all changes before the chat, whatever a model record says."""

# A larger output is not kept: every copy of the session would be as large.
MAX_BYTES = 16 * 1024 * 1024


def to_request(
    params: AssembleParams, blobs: dict[str, bytes], known: KnownMessages | None = None
) -> Request:
    """New messages are stored in `blobs`, `known` ones are not."""
    zone = params.zone
    return replace(
        to_history(params, blobs, known),
        keep=params.keep,
        time_ms=int(params.time_ms),
        model=to_model(params.model),
        outcomes=[to_outcome(outcome) for outcome in params.outcomes],
        warmed_ms=int(params.warmed_ms or 0),
        zone=None if zone is None else Zone(zone.name, zone.offset_minutes),
    )


def to_history(
    params: ListParams, blobs: dict[str, bytes], known: KnownMessages | None = None
) -> Request:
    """A list of messages as a call that is never made."""
    pairs = zip(params.messages, params.entries, strict=True)
    return Request(
        keep=0,
        items=[to_item(message, entry, blobs, known) for message, entry in pairs],
        time_ms=0,
        system=None if params.system is None else sections_as_text(params.system),
        tools=params.tools,
    )


_ASKED_BY: dict[str, AskedBy] = {"manual": "user", "overflow": "overflow", "threshold": "threshold"}


def to_compaction_request(params: SessionCompactParams) -> CompactionRequest:
    """The request behind `session/compact`, without storing its messages again."""
    unused: dict[str, bytes] = {}
    return CompactionRequest(
        by=_ASKED_BY[params.reason],
        items=[to_item(message, None, unused) for message in params.messages],
        previous=params.previous or "",
        instructions=params.instructions or "",
        tokens=params.tokens,
        reserve=params.reserve,
        new_chars=params.new_chars,
        time_ms=int(params.time_ms),
        model=to_model(params.model),
    )


def to_model(model: Mapping[str, Any] | None) -> Model | None:
    """Pi's model record, with Pi's cache retention."""
    if not model:
        return None
    cost = model["cost"] if isinstance(model.get("cost"), dict) else {}
    compat = model["compat"] if isinstance(model.get("compat"), dict) else {}
    breaks = compat.get("supportsExplicitPromptCacheMode") is True
    per_million = cost.get("input")
    provider, id, api = (str(model.get(name) or "") for name in ("provider", "id", "api"))
    prices = prices_of(cost)
    if model.get("retention") == "none":
        prices = replace(prices, cached=False)
    return Model(
        provider=provider,
        id=id,
        api=api,
        window=_positive(model.get("contextWindow")),
        reserve=_positive(model.get("reserve")),
        cache_ttl_s=kept_s(model),
        prices=prices,
        cache=rule_of(api, provider, id, breaks=breaks),
        marks=api == "anthropic-messages",
        threads=model.get("threads") is True,
        input_price=float(per_million) if isinstance(per_million, int | float) else 0.0,
        inline=_inline(api, compat),
        tiers=_tiers(cost) if prices.known and prices.cached else (),
        assumed_reasoning=float(model.get("assumedReasoning") or 0),
    )


def _tiers(cost: Mapping[str, Any]) -> tuple[PriceTier, ...]:
    tiers: list[PriceTier] = []
    for tier in cost.get("tiers") or ():
        names = "inputTokensAbove", "input", "cacheRead", "cacheWrite"
        values = [tier.get(name) if isinstance(tier, dict) else None for name in names]
        numbers = [float(each) for each in values if isinstance(each, int | float)]
        if len(numbers) == len(names):
            fresh, read, write = (each / cost["input"] for each in numbers[1:])
            tiers.append([numbers[0], fresh, read, write or fresh])
    return tuple(tiers)


def _inline(api: str, flags: Mapping[str, Any]) -> InlineChanges:
    # `resolveTranscript` and `resolveTranscriptTools` in pi-ai, as each adapter calls them.
    if not flags.get("supportsMidConvoSystemMessages") or api in _COLLAPSING:
        return "none"
    if api == "anthropic-messages":
        return "all" if flags.get("supportsMidConvoToolChanges") else "text"
    if api == "openai-completions":
        return "additions" if flags.get("supportsMidConvoToolAdditions") else "text"
    if api not in RESPONSES_APIS:
        return "text"
    if flags.get("supportsAdditionalTools"):
        return "all"
    return "additions" if flags.get("supportsToolSearch") else "text"


def _positive(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


def to_outcome(outcome: OutcomeParams) -> Outcome:
    """An entry of `outcomes`."""
    losses = [change for change in outcome.reasoning if _is_loss(change)]
    return Outcome(
        kind=outcome.kind,
        call=outcome.call,
        edited=outcome.edited or 0,
        ending=outcome.ending,
        messages=outcome.messages or 0,
        time_ms=int(outcome.time_ms or 0),
        reason=outcome.reason or "",
        dropped=frozenset(map(_seal, losses)) - {""},
        bound=any(change.get("reason") in _MISMATCHES for change in losses),
    )


_MISMATCHES = frozenset({"prefix_mismatch", "prefix_binding_mismatch"})
"""Why reasoning is dropped whose prefix has changed."""


def _is_loss(change: JsonObject) -> bool:
    # Of Anthropic: `thinking_mismatch_allowed` names blocks that were used all the same. Of OpenAI:
    # what ends with its turn is not lost, as the model would not have used it.
    is_removed = change.get("action") == "removed" and change.get("reason") != "turn_boundary"
    return is_removed or change.get("type") == "thinking_dropped"


def _seal(change: JsonObject) -> str:
    block = change.get("block")
    name = seal_of(block) if isinstance(block, dict) else change.get("id")
    return name if isinstance(name, str) else ""


def to_complete_result(reply: CompleteReply, *, warm: bool) -> CompleteResult:
    """`warm`: the answer is to a prompt that was sent again."""
    message = reply.message
    blocks = [block for block in message.get("content") or () if isinstance(block, dict)]
    calls = [block for block in blocks if block.get("type") == "toolCall"]
    stop, usage = message.get("stopReason"), message.get("usage") or {}
    failed = None
    if stop in UNSENT_STOPS:
        failed = message.get("errorMessage") or f"the call was {stop}"
    elif warm and calls:
        # Tools in such a prompt are the agent's own, and will not be run.
        failed = "it calls tools instead of answering"
    return CompleteResult.model_validate(
        {
            "text": "" if failed else text_in(blocks),
            "calls": [] if failed else calls,
            "stop": stop,
            "failed": failed,
            "model": {"provider": message.get("provider"), "id": message.get("model")},
            "usage": {
                "read": usage.get("cacheRead"),
                "written": usage.get("cacheWrite"),
                "fresh": usage.get("input"),
                "output": usage.get("output"),
                "cost": (usage.get("cost") or {}).get("total"),
            },
            "single_slot": reply.single_slot,
        }
    )


MOST_TYPED_CHARS = 1000
"""A longer text was pasted: nothing in it counts as said by the user."""
# How Pi puts the files of its command line before the message.
_FILE_BEGINS, _FILE_ENDS = '<file name="', "</file>\n"
_COMMAND = re.compile(r"/\S+\s+")
"""A skill or a template: what follows is the user's."""


def typed_in(params: InputParams) -> str | None:
    """What the user typed of an input; None if nothing."""
    if params.source == "extension":
        return None
    own = params.text
    if _FILE_BEGINS in own:
        own = own.rpartition(_FILE_ENDS)[2]
    # Files and standard input come before an argument in the same text, and one of several lines
    # is most likely the text of a file (`pi "$(cat issue.md)"`).
    argument = max((each for each in params.arguments if own.endswith(each)), key=len, default="")
    if params.source == "interactive" and (not params.screen or argument == own):
        own = "" if "\n" in argument else argument
    said = own[match.end() :] if (match := _COMMAND.match(own)) else own
    return said.strip() if 0 < len(said.strip()) <= MOST_TYPED_CHARS else None


def to_blocks(params: ToolObservedParams) -> list[Block]:
    """A tool result's content blocks."""
    return [block for block in params.content or () if isinstance(block, dict)]


def to_nesting(params: ToolObservedParams) -> CallPlace | None:
    """The outer call of a nested tool; None for the model's calls."""
    if params.parent is None:
        return None
    # Pi gives the n-th call of a script the id `<parent>/<n>`.
    number = params.id.removeprefix(f"{params.parent}/")
    position = int(number) - 1 if re.fullmatch("[1-9][0-9]*", number) else None
    return CallPlace(None, position, params.parent)


def to_tool_event(params: ToolObservedParams, cwd: str, changed: Iterable[str] = ()) -> ToolEvent:
    return ToolEvent(
        params.tool,
        params.input or {},
        text_in(params.content),
        params.details,
        params.is_error,
        cwd,
        tuple(changed),
        took_ms=params.took_ms,
    )


def full_output(details: Any) -> bytes | None:
    """The output in the file named by `details`; None if it is missing, irregular or over
    `MAX_BYTES`."""
    # Pi keeps it in a file where it truncates the result.
    path = details.get("fullOutputPath") if isinstance(details, dict) else None
    if not isinstance(path, str) or not path:
        return None
    try:
        return read_regular(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        log.warning("full output not kept: %s", error)
        return None


# Its session files


# Of the first line, which has less in any real file: another file may be one endless line.
MOST_HEADER_BYTES = 64 * 1024


def session_id_in(path: str) -> str | None:
    """The session id in a file's header."""
    try:
        with open_to_read(path) as file:
            header = json.loads(file.readline(MOST_HEADER_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    id = header.get("id") if isinstance(header, dict) else None
    return id if isinstance(id, str) and id else None


def session_name(path: str) -> str:
    """The name that the user last gave a session in Pi."""
    name = ""
    try:
        with open_to_read(path) as file:
            for line in file:
                # Few lines are worth reading as JSON.
                if b'"session_info"' not in line:
                    continue
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("type") == "session_info":
                    value = entry.get("name")
                    name = value.strip() if isinstance(value, str) else ""
    except (OSError, ValueError, RecursionError):
        return name
    return name


def unreadable_lines(path: str) -> int:
    """Number of damaged lines in a session file; 0 if unreadable."""
    # Pi skips such lines silently. The first and the last character tell most of them, and reading
    # a long file as JSON would take seconds.
    try:
        with open_to_read(path) as file:
            return sum(not _is_whole(line.strip()) for line in file)
    except (OSError, ValueError):
        return 0


def _is_whole(line: bytes) -> bool:
    return not line or (line.startswith(b"{") and line.endswith(b"}"))
