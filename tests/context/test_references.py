"""A folded result's line says what the call right above it does not, or may not for long."""

from __future__ import annotations

from context.driver import Host
from context.messages import lines
from context.scenes import ask, context_tool, finish, use


def reference_after(host: Host, command: str) -> str:
    """The first line that is left of a command's output once it has folded."""
    ask(host)
    use(host, "c1", "bash", lines(40), command=command)
    context_tool(host, "t1", "deactivate", "@3")
    finish(host)
    host.wait(600)
    return ask(host).text(2).splitlines()[0]


def test_arguments_that_never_fold_are_not_repeated(host: Host) -> None:
    assert reference_after(host, "npm test").startswith("@3 folded: 40 lines, ")


def test_arguments_that_may_fold_are_shown_in_short(host: Host) -> None:
    assert reference_after(host, "echo " + "x" * 250).startswith('@3 folded: "echo xxx')
