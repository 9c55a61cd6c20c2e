"""A scripted model that a coding agent can be pointed at, and that is as strict as a provider.

It serves on loopback, follows a script, records every request, reports usage by the providers'
cache rules, and refuses what providers refuse. The demo, the recorder and the tests use it.
"""

from foredeck_bench.scripted.agent_dir import write_agent_dir
from foredeck_bench.scripted.cache import PromptCache, Usage, estimate_tokens, prompt_tokens
from foredeck_bench.scripted.request import ModelRequest
from foredeck_bench.scripted.rules import Violation
from foredeck_bench.scripted.server import RecordedRequest, ScriptedModel, answer_summaries
from foredeck_bench.scripted.steps import (
    Failure,
    Reply,
    Text,
    Thinking,
    ToolCall,
    call,
    overflow,
    rate_limited,
    server_error,
)

__all__ = [
    "Failure",
    "ModelRequest",
    "PromptCache",
    "RecordedRequest",
    "Reply",
    "ScriptedModel",
    "Text",
    "Thinking",
    "ToolCall",
    "Usage",
    "Violation",
    "answer_summaries",
    "call",
    "estimate_tokens",
    "overflow",
    "prompt_tokens",
    "rate_limited",
    "server_error",
    "write_agent_dir",
]
