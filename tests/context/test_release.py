"""Letting content go: when an object becomes inactive, and who may say so."""

from __future__ import annotations

import ast
from pathlib import Path

import foredeck
from foredeck.context.messages.items import Item, text_block
from foredeck.context.plan.ops import Op, Shown
from foredeck.context.state.chat import Branch
from foredeck.model.messages import MessageKey

OBJECT = 7


def showing(*, results: int) -> Branch:
    """An active object whose content as many results carry."""
    branch = Branch()
    for index in range(results):
        blocks = [text_block(f"content {index}")]
        branch.plan.append(Item(MessageKey(None, str(index)), "result", blocks))
        branch.plan.write(index, Op("full", shown=Shown(OBJECT)))
        branch.keep(index, OBJECT)
    branch.sets.activate(OBJECT)
    return branch


def test_a_message_that_is_not_rendered_yet_lets_go_of_the_object_it_would_have_shown() -> None:
    branch = showing(results=0)
    branch.plan.append(Item(MessageKey(None, "0"), "result", [text_block("content")]))
    branch.release(0, OBJECT)
    assert branch.sets.active == set()


def test_a_pinned_object_waits_once_its_content_is_gone() -> None:
    branch = showing(results=1)
    branch.sets.pin(OBJECT)
    branch.release(0)
    assert branch.sets.waiting == {OBJECT}


def test_nobody_else_expires_an_object_or_stops_wanting_a_message() -> None:
    callers = {
        path.name
        for path in Path(foredeck.__file__).parent.joinpath("context").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("expire", "unwant")
    }
    assert callers == {"chat.py"}
