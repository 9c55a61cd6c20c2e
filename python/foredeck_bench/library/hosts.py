"""Four hosts of one conversation: Pi and a loop in Python, each with and without foredeck.

All of them have Pi's system prompt and Pi's tools, and really run them; the loop has its own here.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from foredeck import ContextManager, ModelInfo
from foredeck.embedded.chat_completions import ChatCompletions
from foredeck.embedded.format import ToolRequest
from foredeck_bench.demo.run import copy_sample
from foredeck_bench.library.story import Round
from foredeck_bench.scripted import ModelRequest, ScriptedModel, write_agent_dir
from foredeck_bench.scripted.agent_dir import MODEL, PROVIDER
from foredeck_bench.scripted.pi_process import PATIENT, PiInstall, PiWorkspace, run_print
from foredeck_bench.scripted.steps import StepResult

Json = dict[str, Any]
WINDOW = 200_000
SESSION = "bench"
TIMEOUT_S = 1_800.0
_INFO = ModelInfo(f"{PROVIDER}/{MODEL}", WINDOW, 3.0, 0.3, 3.75, 300)
"""As `write_agent_dir` describes it to Pi."""


def replies_of(story: Sequence[Round]) -> list[StepResult]:
    """All that the model says, in order."""
    return [reply for each in story for reply in each.replies]


def through_pi(
    install: PiInstall, root: Path, story: Sequence[Round], extensions: Sequence[Path]
) -> ScriptedModel:
    """The conversation through the real Pi; what reached the model."""
    workspace = PiWorkspace(root)
    copy_sample(workspace.repo)
    # No cache has gone cold at the end, however slow this machine is.
    with ScriptedModel(replies_of(story), window=WINDOW, clock=lambda: 0.0) as model:
        write_agent_dir(workspace.agent_dir, model.url, api="openai-completions", window=WINDOW)
        prompts = [each.prompt for each in story]
        options: Json = {"environment": PATIENT, "timeout_s": TIMEOUT_S}
        ran = run_print(install, workspace, *prompts, extensions=extensions, **options)
    if ran.code:
        raise RuntimeError(f"pi ended with {ran.code}: {ran.stderr[-2000:]}")
    return model


def through_loop(
    root: Path, story: Sequence[Round], first: ModelRequest, *, managed: bool
) -> ScriptedModel:
    """The conversation through a loop, with what Pi's `first` request declares."""
    folder = root / "repo"
    copy_sample(folder)
    with ScriptedModel(replies_of(story), window=WINDOW, clock=lambda: 0.0) as model:
        loop = _Loop(model.url, folder, first)
        if managed:
            home = root / "foredeck"
            with ContextManager(SESSION, model=_INFO, cwd=folder, home=home) as context:
                loop.talk(story, context)
        else:
            loop.talk(story, None)
    return model


class _Loop:
    """An agent loop as anyone would write it."""

    def __init__(self, url: str, folder: Path, first: ModelRequest) -> None:
        self._url = url
        self._format = ChatCompletions()
        self._folder = folder
        self._tools: list[Json] = first.body["tools"]
        self._messages: list[Json] = list(filter(self._format.is_system, first.messages))

    def talk(self, story: Sequence[Round], context: ContextManager | None) -> None:
        """All rounds."""
        for each in story:
            self._messages.append({"role": "user", "content": each.prompt})
            while self._turn(context):
                pass

    def _turn(self, context: ContextManager | None) -> bool:
        """One model call and the tools that it asks for; whether there were any."""
        if context is None:
            tools, sent = self._tools, self._messages
        else:
            tools = [*self._tools, *context.tools]
            sent = context.prepare(self._messages, tools=tools)
        answer = self._ask({"model": MODEL, "messages": sent, "tools": tools})
        if context is not None:
            context.report(answer["usage"])
        self._messages.append(answer["choices"][0]["message"])
        uses = self._format.tool_uses(self._messages[-1])
        for use in uses:
            text = _run(self._folder, use)
            made = self._format.result(use, text, failed=False)
            self._messages.append(context.observed(use, text) if context is not None else made)
        return bool(uses)

    def _ask(self, body: Json) -> Json:
        answer = httpx.post(f"{self._url}/v1/chat/completions", json=body, timeout=600)
        found: Json = json.loads(answer.raise_for_status().content)
        return found


def _run(folder: Path, use: ToolRequest) -> str:
    """Pi's tools, as far as the story uses them."""
    if use.name == "bash":
        command = ["sh", "-c", str(use.arguments["command"])]
        pipes: Json = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return str(subprocess.run(command, cwd=folder, check=False, **pipes).stdout)
    file = folder / str(use.arguments["path"])
    if use.name == "edit":
        edits = use.arguments["edits"]
        for edit in edits:
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace(edit["oldText"], edit["newText"], 1), encoding="utf-8")
        return f"Successfully replaced {len(edits)} block(s) in {use.arguments['path']}."
    return file.read_text(encoding="utf-8")
