"""The server: it answers like a provider, refuses like one, and counts like one."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from foredeck_bench.twin import anthropic, google, openai, responses, thinking
from foredeck_bench.twin.anthropic import ThreadRefusal, Threads
from foredeck_bench.twin.billing import ModelRecord, PromptCache, Usage
from foredeck_bench.twin.handler import ModelAnswer, ModelHandler
from foredeck_bench.twin.prompts import estimate_tokens, prompt_tokens
from foredeck_bench.twin.script import (
    Api,
    Failure,
    Finding,
    Json,
    ModelRequest,
    Reply,
    Script,
    SealedSummary,
    StepOutcome,
    StepResult,
    Text,
    Thinking,
    Violation,
    as_outcome,
    overflow,
    unverified,
)
from foredeck_bench.twin.thinking import SealedMemory, ThinkingMemory, without_items

_WIRES = {
    "anthropic-messages": anthropic,
    "openai-completions": openai,
    "openai-responses": responses,
    "google-generative-ai": google,
}

SUMMARY_MARK = "context summarization assistant"
"""What Pi's own system prompt for compaction and branch summaries says."""


@dataclass(slots=True)
class RecordedRequest:
    """One request and its answer.

    `thread`: what was said of a partial one; `complete`: the whole answer was sent; `dropped`:
    reasoning that the model did not see.
    """

    request: ModelRequest
    time_s: float
    side: bool = False
    status: int = 0
    usage: Usage | None = None
    reply: list[Json] = field(default_factory=list)
    complete: bool = False
    thread: Json | None = None
    dropped: list[Json] = field(default_factory=list)


def answer_summaries(request: ModelRequest) -> StepResult | None:
    """Answers Pi's requests for summaries, so scripts need not count them."""
    if SUMMARY_MARK in request.system:
        return "## Goal\nContinue the work.\n\n## Progress\nSee the files named above."
    return None


class _HttpServer(ThreadingHTTPServer):
    """Ignores clients that are gone."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ScriptedModel:
    """Serves a script over the Anthropic Messages API, OpenAI chat completions and Responses, and
    Google's generateContent.

        with ScriptedModel([call("read", path="a.py"), "done"]) as model:
            ...  # a client talks to model.url
        assert model.violations == []

    `script`: see the module of that name. `window`: tokens above which a prompt is refused as too
    long, None for no limit. `side` is asked before the script and may answer a request without
    using up a step. `record` says how the model caches, what binds its reasoning and what it costs;
    without it, caches are those of the API, and Anthropic's reasoning is bound. `clock` gives
    seconds for what expires. `binds`: over OpenAI's wires, too, a prompt is refused where bytes
    before encrypted reasoning of the turn under way have changed; no correct client can know of
    that, so it is no violation. `port`: 0 for a free one.

    `requests` holds every request in order of arrival, refused ones included; `violations` every
    refusal that a correct client never meets.
    """

    def __init__(
        self,
        script: Script,
        *,
        window: int | None = None,
        record: ModelRecord | None = None,
        cache: PromptCache | None = None,
        side: Callable[[ModelRequest], StepResult | None] = answer_summaries,
        clock: Callable[[], float] = time.monotonic,
        binds: bool = False,
        port: int = 0,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.violations: list[Violation] = []
        self._script = script
        self._position = 0
        self._window = window
        self.record = record
        self._cache = cache or PromptCache(record.cache if record else None)
        self._side = side
        self._clock = clock
        self._binds = binds
        self._port = port
        self._threads = Threads()
        self._thinking = ThinkingMemory(record.bound if record else True)
        self._sealed = SealedMemory()
        self._ids = 0
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    # ------------------------------------------------------------ running

    def start(self) -> Self:
        if self._server is not None:
            return self
        server = _HttpServer(
            ("127.0.0.1", self._port), ModelHandler.serving(self.answer, self.other)
        )
        self._server = server
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop listening. What was recorded stays readable."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Base URL of the Anthropic API; OpenAI's are served below `url + "/v1"`."""
        if self._server is None:
            raise RuntimeError("the scripted model is not running")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def steps_left(self) -> int | None:
        """Steps not yet used; None where the script is a function."""
        return None if callable(self._script) else len(self._script) - self._position

    # ------------------------------------------------------------ answering

    def answer(self, api: Api, body: Json) -> ModelAnswer:
        """Called for each request on its own thread."""
        with self._lock:
            request = _request(len(self.requests), api, body)
            recorded = RecordedRequest(request, self._clock())
            self.requests.append(recorded)
            refusal = self._whole(recorded) or self._refusal(recorded.request)
        outcome = refusal or self._outcome(recorded)
        if isinstance(outcome, Failure):
            recorded.status = outcome.status
            return ModelAnswer(
                outcome.status, _WIRES[api].error_body(outcome), outcome.retry_after_s
            )
        return self._stream(recorded, outcome)

    def other(self, path: str, body: Json) -> Json | None:
        if path == "/v1/messages/count_tokens":
            # `BetaMessageTokensCount` in the types of anthropic-sdk-typescript 0.129.
            return {
                "input_tokens": prompt_tokens(ModelRequest(0, "anthropic-messages", body)),
                "context_management": None,
            }
        return None

    def _whole(self, recorded: RecordedRequest) -> Failure | None:
        request = recorded.request
        recorded.thread = request.body.get("thread")
        try:
            body = self._threads.rebuild(request.body, recorded.time_s)
        except ThreadRefusal as refusal:
            return Failure(
                refusal.status, "invalid_request_error", refusal.message, code=refusal.code
            )
        recorded.request = replace(request, body=body)
        return None

    def _refusal(self, request: ModelRequest) -> Failure | None:
        findings = list(self._check(request))
        for rule, message in findings:
            self.violations.append(Violation(request.index, rule, message))
        if findings:
            return Failure(400, "invalid_request_error", findings[0][1])
        if self._binds and request.api != "anthropic-messages":
            sealed = self._sealed.changed_before(request.body)
            if sealed is not None:
                return unverified(sealed)
        tokens = prompt_tokens(request)
        if self._window is not None and tokens > self._window:
            return overflow(tokens, self._window)
        return None

    def _check(self, request: ModelRequest) -> Iterator[Finding]:
        body = request.body
        if request.api == "anthropic-messages":
            yield from list(anthropic.check(body)) or self._thinking.check(body)
            if self.record and self.record.always_thinks:
                yield from anthropic.check_always_thinks(body)
            return
        if request.api == "openai-responses":
            alone = list(responses.check_items(request.raw))
            if alone:
                yield from alone
                return
        yield from list(openai.check(body)) or self._sealed.check(body)

    def _outcome(self, recorded: RecordedRequest) -> StepOutcome:
        request = recorded.request
        try:
            beside = self._side(request)
            if beside is not None:
                recorded.side = True
                return as_outcome(beside)
            return as_outcome(self._next_step(request))
        except Exception as error:
            message = f"the script has no answer: {type(error).__name__}: {error}"
            self.violations.append(Violation(request.index, "script", message))
            return Failure(400, "invalid_request_error", message)

    def _next_step(self, request: ModelRequest) -> StepResult:
        if callable(self._script):
            return self._script(request)
        with self._lock:
            if self._position >= len(self._script):
                raise LookupError(f"all {len(self._script)} steps are used up")
            step = self._script[self._position]
            self._position += 1
        return step(request) if callable(step) else step

    def _stream(self, recorded: RecordedRequest, reply: Reply) -> ModelAnswer:
        request = recorded.request
        with self._lock:
            blocks = self._wire_blocks(reply)
            recorded.dropped, visible = self._seen(request)
            self._remember(request, blocks)
            usage = self._cache.serve(visible, estimate_tokens(blocks), recorded.time_s)
        recorded.status, recorded.reply, recorded.usage = 200, blocks, usage
        wire = _WIRES[request.api]
        name = f"msg_{request.index:04d}"
        if recorded.thread is not None and not reply.cut:
            self._threads.store(name, request.body, blocks, recorded.time_s)
        model = str(request.body.get("model", ""))

        def done() -> None:
            recorded.complete = not reply.cut

        answer = (name, model, blocks, reply.stop_reason, usage, recorded.dropped)
        if not request.raw.get("stream"):
            return ModelAnswer(200, wire.whole(*answer), delay_s=reply.delay_s, done=done)
        events = list(wire.events(*answer))
        part_sent = events[: max(1, len(events) // 2)] if reply.cut else events
        return ModelAnswer(200, part_sent, delay_s=reply.delay_s, cut=reply.cut, done=done)

    def _seen(self, request: ModelRequest) -> tuple[list[Json], ModelRequest]:
        """The reasoning that the model does not see, and what it does see."""
        record = self.record
        carries = record.carries if record else True
        if request.api == "anthropic-messages":
            places = self._thinking.dropped(request.body, carries)
            visible = replace(request, body=thinking.without(request.body, places))
            reported = [
                {
                    "type": "thinking_dropped",
                    "path": f"messages.{index}.content.{place}",
                    "reason": "prefix_binding_mismatch",
                }
                for index, place in places
            ]
            return reported if thinking.drops(request.body) else [], visible
        if request.api != "openai-responses":
            return [], request
        withheld = self._sealed.withheld(request.raw, bool(record and record.bound), carries)
        return withheld, replace(request, sent=without_items(request.raw, withheld))

    def _remember(self, request: ModelRequest, blocks: list[Json]) -> None:
        if request.api == "anthropic-messages":
            self._thinking.issue(request.body, blocks)
            return
        self._sealed.issue(request.body, blocks)
        if request.api == "openai-responses":
            self._sealed.issue_items(request.raw, [responses.item_of(b) for b in blocks])

    def _wire_blocks(self, reply: Reply) -> list[Json]:
        blocks: list[Json] = []
        for block in reply.blocks:
            self._ids += 1
            if isinstance(block, Text):
                blocks.append({"type": "text", "text": block.text})
            elif isinstance(block, SealedSummary):
                blocks.append({"type": "compaction", "encrypted_content": block.payload})
            elif isinstance(block, Thinking):
                blocks.append(_signed(block, f"sig-{self._ids:06d}"))
            else:
                name = block.id or f"toolu_{self._ids:06d}"
                blocks.append(
                    {"type": "tool_use", "id": name, "name": block.name, "input": block.arguments}
                )
        return blocks


def _signed(block: Thinking, signature: str) -> Json:
    if block.redacted:
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": block.text, "signature": signature}


def _request(index: int, api: Api, body: Json) -> ModelRequest:
    if api == "openai-responses":
        return ModelRequest(index, api, responses.as_chat(body), body)
    if api == "google-generative-ai":
        return ModelRequest(index, api, google.as_chat(body), body)
    return ModelRequest(index, api, body)
