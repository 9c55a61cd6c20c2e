"""foredeck under any library that takes a client of the `openai` package."""

from __future__ import annotations

from typing import Any

from foredeck.embedded.manager import AsyncContextManager
from foredeck.errors import ForedeckError

_MANAGED = "_managed_by_foredeck"


def manage(client: Any, context: AsyncContextManager) -> None:
    """Lets `client.chat.completions.create` send what `context` makes of its messages.

    `client`: an `openai.AsyncOpenAI` of this conversation alone. If foredeck fails, the messages go
    out as they are.
    """
    completions = client.chat.completions
    # Two managers would each take the other's rewriting for the loop's own messages.
    if getattr(completions.create, _MANAGED, False):
        raise ValueError("this client has a context manager already")
    create = completions.create

    async def managed(**arguments: Any) -> Any:
        tools = arguments.get("tools")
        declared = tools if isinstance(tools, list) else []
        try:
            messages = await context.prepare(list(arguments["messages"]), tools=declared)
        except ForedeckError as error:
            context.notices.append(f"A call went out without foredeck: {error}")
            return await create(**arguments)
        answer = await create(**{**arguments, "messages": messages})
        if (usage := getattr(answer, "usage", None)) is not None:
            context.report(usage)
        return answer

    setattr(managed, _MANAGED, True)
    completions.create = managed
