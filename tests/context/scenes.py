"""Short stretches of conversation that many tests need."""

from __future__ import annotations

from typing import Any

from context.driver import Host
from context.messages import Block, assistant, calls, lines, result, thinking, user
from context.sent import Sent
from foredeck.hosts.protocol import CommandParams


def ask(host: Host, text: str = "Go on.") -> Sent:
    """The user says something, and the model is called."""
    host.add(user(text))
    return host.call()


def use(host: Host, id: str, tool: str, output: str | list[Block], /, **arguments: object) -> Sent:
    """The model uses a tool and is called with its result."""
    host.add(assistant(calls(id, tool, **arguments)), result(id, tool, output))
    return host.call()


def bash(host: Host, id: str, content: str | None = None) -> Sent:
    """A command whose output is long enough to be folded, and like no other."""
    return use(host, id, "bash", content or lines(20, f"output of {id}"), command=f"run {id}")


def outputs(host: Host, count: int, prefix: str = "c") -> Sent:
    """So many commands, one after the other."""
    return [bash(host, f"{prefix}{number}") for number in range(count)][-1]


def later(host: Host, text: str = "Go on.", seconds: int = 600) -> Sent:
    """The turn ends, and the user goes on when the provider's cache has expired."""
    finish(host)
    host.wait(seconds)
    return ask(host, text)


def think(
    host: Host, id: str, thought: str = "hm", seal: str = "", output: str = "", **more: Any
) -> Sent:
    """A command with reasoning before it that is sealed as on Anthropic's wire."""
    said = thinking(thought, seal or f"seal-{id}"), calls(id, "bash", command=id)
    host.add(assistant(*said, **more), result(id, "bash", output or lines(20, id)))
    return host.call()


def context_tool(host: Host, id: str, tool: str, name: str) -> Sent:
    """The model uses one of the context tools and is called with its result."""
    host.add(assistant(calls(id, tool, **{"id": name})), host.tool(id, tool, **{"id": name}))
    return host.call()


def finish(host: Host, text: str = "Done.") -> None:
    """The model answers without tools: the turn ends."""
    host.add(assistant(text))


def go_on(host: Host, text: str = "Go on.", answer: str = "Done.") -> Sent:
    """The turn ends with an answer, and the user goes on."""
    finish(host, answer)
    return ask(host, text)


def old_output(host: Host, id: str = "old") -> Sent:
    """Three more user turns after a command, so that the window no longer holds its output."""
    sent = bash(host, id)
    for number in range(3):
        sent = go_on(host, f"Turn after {id}, {number}")
    return sent


def command_text(host: Host, name: str, args: str = "") -> str:
    """What the user reads who has typed a command."""
    params = CommandParams(session=host.session, name=name, args=args)
    return str(host.engine.command(params)["text"])
