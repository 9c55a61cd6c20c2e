"""The real Pi on a scripted model: scratch folders, processes, configuration."""

from foredeck_bench.scripted.pi_process import write_agent_dir
from foredeck_bench.twin.billing import PromptCache, Usage
from foredeck_bench.twin.prompts import estimate_tokens, prompt_tokens
from foredeck_bench.twin.request import ModelRequest, Violation
from foredeck_bench.twin.server import RecordedRequest, ScriptedModel, answer_summaries
from foredeck_bench.twin.steps import (
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
