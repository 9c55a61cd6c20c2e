"""Facts of a command's output: by what was run, else by how it ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from foredeck.commands.output import ToolOutput
from foredeck.commands.runs import error_facts, install_facts, test_facts
from foredeck.commands.shell import programs
from foredeck.context.digests.files import json_facts, text_facts
from foredeck.context.digests.git import diff_facts, log_facts, status_facts
from foredeck.context.digests.searches import listing_facts, search_facts
from foredeck.context.digests.traces import trace_facts

_NUMBERED = re.compile(r"^ *\d+\t", re.MULTILINE)

SEARCHES = frozenset({"grep", "rg", "egrep", "fgrep", "ag", "ack", "git grep"})
LISTINGS = frozenset({"find", "ls", "fd", "tree", "git ls-files", "git ls-tree"})
FILES = frozenset({"cat", "sed", "head", "tail", "nl", "bat", "less", "awk", "jq"})
GIT: Mapping[str, Callable[[str], list[str]]] = {
    "git status": status_facts,
    "git diff": diff_facts,
    "git show": diff_facts,
    "git log": log_facts,
}


def command_facts(arguments: Mapping[str, Any], output: ToolOutput) -> list[str]:
    """What the steps of a command that put something out are about, the most telling first."""
    command = str(arguments.get("command") or "")
    # 1 says no more than that it failed, as the reference line does.
    found = [f"exit {output.exit_code}"] if output.exit_code not in (None, 0, 1) else []
    run = programs(command)
    if run and run <= SEARCHES:
        return found + search_facts(arguments, output)
    if run and run <= LISTINGS:
        return found + listing_facts(arguments, output)
    for program, facts in GIT.items():
        if program in run:
            found += facts(output.body)
    if run and run <= FILES:
        text = _NUMBERED.sub("", output.body)
        return found + (text_facts(command, text) or error_facts(output.body))
    return found + (outcome_facts(output.body) or json_facts(output.body))


def paste_facts(_arguments: Mapping[str, Any], output: ToolOutput) -> list[str]:
    """What a user has pasted: a difference, how something ran, or what is in a file."""
    text = output.body
    if "diff --git " in text:
        return diff_facts(text)
    return outcome_facts(text) or text_facts("", text) or text_facts(".md", text)


def outcome_facts(text: str) -> list[str]:
    """How a run ended: tests, builds, installations, what was raised, errors."""
    traces = trace_facts(text)
    found = [*test_facts(text), *install_facts(text), *traces]
    for fact in error_facts(text, 1 if traces else 2):
        if not any(fact in known or known in fact for known in found):
            found.append(fact)
    return found
