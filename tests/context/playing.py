"""Playing the steps of `strategies` on a host."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from context.driver import Host
from context.messages import assistant, calls, result
from context.strategies import Step
from foredeck.errors import ToolError


@contextmanager
def fresh_host(**options: Any) -> Iterator[Host]:
    """A host on a database of its own, gone at the end."""
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder), **options)
        try:
            yield host
        finally:
            host.close()


def take(host: Host, step: Step) -> None:
    """Add the messages of a step, run its tool, and let its time pass."""
    host.add(*step.messages)
    if step.tool:
        use_tool(host, step.tool, step.target)
    host.wait(step.wait_s)


def use_tool(host: Host, tool: str, target: int) -> None:
    """The model uses a context tool on the object numbered `target` in the index, counted round."""
    index = host.state.objects.index
    handle = f"@{target % len(index) + 1}"
    id = f"ours_{len(host.messages)}"
    call = calls(id, tool, **{"id": handle})
    try:
        answer = host.tool(id, tool, **{"id": handle})
    except ToolError as error:
        answer = result(id, tool, str(error), failed=True)
    host.add(assistant(call), answer)
