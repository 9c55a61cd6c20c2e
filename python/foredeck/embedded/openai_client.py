"""foredeck under any library that takes a client of the `openai` package."""

from __future__ import annotations

from typing import Any

from foredeck.embedded.waiting import AsyncContextManager


def manage(client: Any, context: AsyncContextManager) -> None:
    """From now on, what `client.chat.completions.create` sends is what `context` makes of it.

    `client`: an `openai.AsyncOpenAI` of this conversation alone. Whoever uses it notices nothing:
    its own list of messages stays as it is.
    """
    create = client.chat.completions.create

    async def managed(**arguments: Any) -> Any:
        tools = arguments.get("tools")
        declared = tools if isinstance(tools, list) else []
        messages = await context.prepare(list(arguments["messages"]), tools=declared)
        answer = await create(**{**arguments, "messages": messages})
        if (usage := getattr(answer, "usage", None)) is not None:
            context.report(usage.model_dump())
        return answer

    client.chat.completions.create = managed
