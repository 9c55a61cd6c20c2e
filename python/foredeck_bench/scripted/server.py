"""The scripted model: a server on loopback that answers like a provider and refuses like one."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from foredeck_bench.scripted import (
    anthropic_rules,
    anthropic_wire,
    openai_rules,
    openai_wire,
    responses_wire,
)
from foredeck_bench.scripted.cache import PromptCache, Usage, estimate_tokens, prompt_tokens
from foredeck_bench.scripted.handler import ModelAnswer, ModelHandler
from foredeck_bench.scripted.reasoning import ReasoningMemory
from foredeck_bench.scripted.request import Api, ModelRequest
from foredeck_bench.scripted.rules import Finding, Violation
from foredeck_bench.scripted.steps import (
    Failure,
    Reply,
    Script,
    StepOutcome,
    StepResult,
    Text,
    Thinking,
    as_outcome,
    overflow,
    unverified,
)
from foredeck_bench.twin.threads import ThreadRefusal, Threads

Json = dict[str, Any]

_WIRES = {
    "anthropic-messages": anthropic_wire,
    "openai-completions": openai_wire,
    "openai-responses": responses_wire,
}

SUMMARY_MARK = "context summarization assistant"
"""What Pi's own system prompt for compaction and branch summaries says."""


@dataclass(slots=True)
class RecordedRequest:
    """One request and what became of it.

    `request` is the whole one also where only its end was sent; `thread` is what was said of that.
    `status` is the HTTP status, `side` tells that it was answered beside the script, `complete`
    that the whole answer was sent: False where the step cut it or the client went away.
    """

    request: ModelRequest
    time_s: float
    side: bool = False
    status: int = 0
    usage: Usage | None = None
    reply: list[Json] = field(default_factory=list)
    complete: bool = False
    thread: Json | None = None


def answer_summaries(request: ModelRequest) -> StepResult | None:
    """Answers Pi's requests for a summary, so that scripts need not count them."""
    if SUMMARY_MARK in request.system:
        return "## Goal\nContinue the work.\n\n## Progress\nSee the files named above."
    return None


class _HttpServer(ThreadingHTTPServer):
    """Says nothing of clients that are gone: tests and benches kill them."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ScriptedModel:
    """Serves a script over the Anthropic Messages API, OpenAI chat completions and Responses.

        with ScriptedModel([call("read", path="a.py"), "done"]) as model:
            ...  # a client talks to model.url
        assert model.violations == []

    `script`: see `steps`. `window`: tokens above which a prompt is refused as too long, None for
    no limit. `side` is asked before the script and may answer a request without using up a step.
    `clock` gives seconds for the cache's expiry. `binds`: over OpenAI's wires, too, a prompt is
    refused where bytes before encrypted reasoning of the turn under way have changed; no correct
    client can know of that, so it is no violation.

    `requests` holds every request in order of arrival, refused ones included; `violations` every
    refusal that a correct client never meets.
    """

    def __init__(
        self,
        script: Script,
        *,
        window: int | None = None,
        cache: PromptCache | None = None,
        side: Callable[[ModelRequest], StepResult | None] = answer_summaries,
        clock: Callable[[], float] = time.monotonic,
        binds: bool = False,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.violations: list[Violation] = []
        self._script = script
        self._position = 0
        self._window = window
        self._cache = cache or PromptCache()
        self._side = side
        self._clock = clock
        self._binds = binds
        self._threads = Threads()
        self._reasoning = ReasoningMemory()
        self._ids = 0
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    # ------------------------------------------------------------ running

    def start(self) -> Self:
        """Listen on a free port of the loopback interface. Does nothing if it listens already."""
        if self._server is not None:
            return self
        server = _HttpServer(("127.0.0.1", 0), ModelHandler.serving(self.answer))
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
        """The answer to one request. Called by the HTTP handler, each time on its own thread."""
        with self._lock:
            responses = api == "openai-responses"
            alone = [*responses_wire.check_items(body)] if responses else []
            body = responses_wire.as_chat(body) if responses else body
            recorded = RecordedRequest(ModelRequest(len(self.requests), api, body), self._clock())
            self.requests.append(recorded)
            refusal = self._whole(recorded) or self._refusal(recorded.request, alone)
        outcome = refusal or self._outcome(recorded)
        if isinstance(outcome, Failure):
            recorded.status = outcome.status
            return ModelAnswer(
                outcome.status, _WIRES[api].error_body(outcome), outcome.retry_after_s
            )
        return self._stream(recorded, outcome)

    def _whole(self, recorded: RecordedRequest) -> Failure | None:
        """Put the whole conversation in place of the end of one that the server keeps."""
        request = recorded.request
        recorded.thread = request.body.get("thread")
        try:
            body = self._threads.rebuild(request.body, recorded.time_s)
        except ThreadRefusal as refusal:
            return Failure(
                refusal.status, "invalid_request_error", refusal.message, code=refusal.code
            )
        recorded.request = ModelRequest(request.index, request.api, body)
        return None

    def _refusal(self, request: ModelRequest, alone: list[Finding]) -> Failure | None:
        findings = alone or list(self._check(request))
        for rule, message in findings:
            self.violations.append(Violation(request.index, rule, message))
        if findings:
            return Failure(400, "invalid_request_error", findings[0][1])
        if self._binds and request.api != "anthropic-messages":
            sealed = self._reasoning.changed_before(request.body)
            if sealed is not None:
                return unverified(sealed)
        tokens = prompt_tokens(request.body)
        if self._window is not None and tokens > self._window:
            return overflow(tokens, self._window)
        return None

    def _check(self, request: ModelRequest) -> Iterator[Finding]:
        anthropic = request.api == "anthropic-messages"
        findings = list(
            anthropic_rules.check(request.body) if anthropic else openai_rules.check(request.body)
        )
        if not findings:
            memory = self._reasoning
            checks = (memory.check,) if anthropic else (memory.check_plain, memory.check_sealed)
            findings = [finding for check in checks for finding in check(request.body)]
        yield from findings

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
            self._remember(request, blocks)
            usage = self._cache.serve(request, estimate_tokens(blocks), recorded.time_s)
        recorded.status, recorded.reply, recorded.usage = 200, blocks, usage
        wire = _WIRES[request.api]
        name = f"msg_{request.index:04d}"
        if recorded.thread is not None and not reply.cut:
            self._threads.store(name, request.body, blocks, recorded.time_s)
        model = str(request.body.get("model", ""))

        def done() -> None:
            recorded.complete = not reply.cut

        if not request.body.get("stream"):
            whole = wire.whole(name, model, blocks, reply.stop_reason, usage)
            return ModelAnswer(200, whole, delay_s=reply.delay_s, done=done)
        events = list(wire.events(name, model, blocks, reply.stop_reason, usage))
        kept = events[: max(1, len(events) // 2)] if reply.cut else events
        return ModelAnswer(200, kept, delay_s=reply.delay_s, cut=reply.cut, done=done)

    def _remember(self, request: ModelRequest, blocks: list[Json]) -> None:
        if request.api == "anthropic-messages":
            self._reasoning.issue(request.body, blocks)
            return
        self._reasoning.issue_sealed(request.body, blocks)
        for block in blocks:
            if block["type"] == "thinking":
                self._reasoning.issue_plain(block["thinking"])

    def _wire_blocks(self, reply: Reply) -> list[Json]:
        """The reply's blocks in Anthropic's shape, with ids and signatures given."""
        blocks: list[Json] = []
        for block in reply.blocks:
            self._ids += 1
            if isinstance(block, Text):
                blocks.append({"type": "text", "text": block.text})
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
