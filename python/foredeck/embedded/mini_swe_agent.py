"""foredeck under mini-swe-agent, by the place that it has for models of one's own: a class that its
configuration names.

    model:
      model_class: foredeck.embedded.mini_swe_agent.ForedeckModel
      managed_class: litellm
"""

from __future__ import annotations

import atexit
import uuid
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from foredeck.embedded.format import ToolRequest
from foredeck.embedded.manager import ContextManager, ModelInfo
from foredeck.errors import ForedeckError

Message = dict[str, Any]

_NO_TOOLS_OF_OURS = {"tools.context": "false", "tools.search": "false"}
"""The agent knows no tool but bash."""


class ForedeckModel:
    """A model of mini-swe-agent's whose messages foredeck manages.

    `managed_class` asks the model; `window` in tokens; all else is that class's configuration.
    """

    def __init__(
        self,
        *,
        managed_class: str = "litellm",
        session: str | None = None,
        window: int = 200_000,
        home: str | Path | None = None,
        **config: Any,
    ) -> None:
        get_class = import_module("minisweagent.models").get_model_class
        self._model = get_class(config["model_name"], managed_class)(**config)
        self._tools: list[Message] = []
        if "textbased" not in managed_class:
            tools = import_module("minisweagent.models.utils.actions_toolcall")
            self._tools = [tools.BASH_TOOL]
        self.context = ContextManager(
            session or str(uuid.uuid4()),
            model=ModelInfo(str(config["model_name"]), window),
            home=home,
            settings=_NO_TOOLS_OF_OURS,
            harness="mini-swe-agent",
        )
        atexit.register(self.context.close)  # the agent has no word for the end of a model

    def query(self, messages: Sequence[Message], **kwargs: Any) -> Message:
        """Asks the model with the managed messages; if foredeck fails, with the messages as they
        are."""
        # The agent keeps its own notes there, which no provider takes.
        plain = [{k: v for k, v in message.items() if k != "extra"} for message in messages]
        try:
            prepared = self.context.prepare(plain, tools=self._tools)
        except ForedeckError as error:
            self.context.notices.append(f"A call went out without foredeck: {error}")
            return self._asked(messages, kwargs)
        answer = self._asked(prepared, kwargs)
        usage = ((answer.get("extra") or {}).get("response") or {}).get("usage")
        if isinstance(usage, Mapping):
            self.context.report(usage)
        return answer

    def _asked(self, messages: Sequence[Message], kwargs: Mapping[str, Any]) -> Message:
        answer: Message = self._model.query(messages, **kwargs)
        return answer

    def format_observation_messages(
        self, message: Message, outputs: list[Message], template_vars: Message | None = None
    ) -> list[Message]:
        observations: list[Message] = self._model.format_observation_messages(
            message, outputs, template_vars
        )
        uses = {use.id: use for use in self.context.calls_in(message)}
        for result in observations:
            use: ToolRequest | None = uses.get(str(result.get("tool_call_id")))
            if use is not None and isinstance(result.get("content"), str):
                self.context.observed(use, result["content"])
        return observations

    def __getattr__(self, name: str) -> Any:
        """All else is the managed model's own."""
        return getattr(self._model, name)
