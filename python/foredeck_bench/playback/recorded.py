"""A recorded session as it can be played."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from foredeck_agents.histories.records import Transcript
from foredeck_bench.twin.steps import Block, Reply, Text, Thinking, ToolCall

Json = dict[str, Any]

_UNSENT = ("error", "aborted")


@dataclass(slots=True)
class RecordedPrompt:
    """What the user said before an answer."""

    texts: list[str] = field(default_factory=list)
    images: list[Json] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n\n".join(self.texts) or "Go on."


@dataclass(slots=True)
class RecordedAnswer:
    """One answer, when it was asked for, and what the user said before, if anything."""

    reply: Reply
    time_ms: int
    prompt: RecordedPrompt | None = None

    @property
    def calls(self) -> bool:
        """Whether tools run after it."""
        return self.reply.stop_reason == "tool_use"


@dataclass(slots=True)
class RecordedPlay:
    """A session's newest branch, without failed and stopped calls."""

    answers: list[RecordedAnswer] = field(default_factory=list)
    results: dict[str, Json] = field(default_factory=dict)
    tools: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, transcript: Transcript, most: int | None = None) -> RecordedPlay:
        """A recording, or so many calls of it; raises ValueError."""
        play = cls()
        play._take(transcript)
        if not play.answers:
            raise ValueError(f"{transcript.path.name}: no answer to play")
        play.answers = play.answers[:most]
        last = play.answers[-1]
        if last.calls:
            # Their results are asked about once more, and the recording ends there.
            play.answers.append(RecordedAnswer(Reply((Text("Done."),)), last.time_ms))
        return play

    def _take(self, transcript: Transcript) -> None:
        messages = [recorded.message for recorded in transcript.messages]
        times = {call.seen: call.time_ms for call in transcript.calls}
        results = _results(messages)
        waiting: RecordedPrompt | None = None
        for index, message in enumerate(messages):
            role = message.get("role")
            if role not in ("assistant", "toolResult", "compactionSummary"):
                waiting = waiting or RecordedPrompt()
                _say(waiting, message)
            if role != "assistant" or message.get("stopReason") in _UNSENT:
                continue
            blocks = tuple(self._blocks(message, results))
            if not blocks:
                continue
            if not self.answers or (waiting is None and not self.answers[-1].calls):
                waiting = waiting or RecordedPrompt()
            before = self.answers[-1].time_ms if self.answers else 1
            time_ms = max(times.get(index, 0), before)
            self.answers.append(RecordedAnswer(Reply(blocks), time_ms, waiting))
            waiting = None

    def _blocks(self, message: Json, results: dict[str, Json]) -> Iterator[Block]:
        content = message.get("content")
        blocks: list[Json] = content if isinstance(content, list) else [{"type": "text"}]
        for block in blocks:
            text = str(block.get("thinking") or block.get("text") or "")
            if block.get("type") == "thinking" and text.strip():
                yield Thinking(text)
            elif block.get("type") == "text" and text.strip():
                yield Text(text)
            elif block.get("type") == "toolCall" and str(block.get("id")) in results:
                # Ids of another wire do not pass everywhere.
                id = f"call_{len(self.results) + 1:06d}"
                self.results[id] = results.pop(str(block["id"]))
                self.tools.add(str(block["name"]))
                yield ToolCall(str(block["name"]), block.get("arguments") or {}, id)


def _results(messages: list[Json]) -> dict[str, Json]:
    return {
        str(message["toolCallId"]): {
            "content": message.get("content") or [{"type": "text", "text": ""}],
            "isError": bool(message.get("isError")),
        }
        for message in messages
        if message.get("role") == "toolResult"
    }


def _say(prompt: RecordedPrompt, message: Json) -> None:
    content = message.get("content") or message.get("output") or message.get("summary") or ""
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        if block.get("type") == "image":
            prompt.images.append(block)
        elif str(block.get("text") or "").strip():
            prompt.texts.append(str(block["text"]))
