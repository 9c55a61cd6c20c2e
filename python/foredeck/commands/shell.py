"""The steps of a shell command line, and the programs that they run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_QUOTED_ON_A_LINE = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.")
_QUOTED = re.compile(_QUOTED_ON_A_LINE.pattern, re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*(\w+|'').*", re.DOTALL)
_HEREDOC_BODY = re.compile(
    r"<<-?[ ]*(['\"]?)(\w+)\1[^\n]*(\n.*?(?:^[ \t]*\2[ \t]*$|\Z))", re.MULTILINE | re.DOTALL
)
_PLAIN_WORD = re.compile(r"[A-Za-z][\w:.@-]*")
_STEPS = re.compile(r"(?:^|(?<=\s))#.*|&&|\|\||[;\n]", re.MULTILINE)
_BEFORE = re.compile(r"[\s({]*(?:(?:\w+=\S*|sudo|time|env|command|timeout \S+|xargs)\s+)*")
_SILENT = frozenset({"cd", "echo", "pwd", "export", "set", "mkdir", "true", "sleep", "source"})
_WORD = re.compile(r"\S+")
_REDIRECTION = re.compile(r"\d?>{1,2}&?\S*|<")
_ASSIGNMENT = re.compile(r"\w+=")
_ONE_WORD = (
    *("git", "go", "npm", "npx", "pnpm", "yarn", "bun", "bunx", "deno", "cargo", "rustup"),
    *("docker", "podman", "kubectl", "helm", "terraform", "make", "just", "task", "nix"),
    *("pip", "pip3", "uv", "uvx", "poetry", "pipx", "conda", "hatch", "bundle", "rails"),
    *("mix", "dotnet", "swift", "brew", "apt", "apt-get", "systemctl", "golangci-lint"),
)
_WORDS_OF_A_NAME = {
    **dict.fromkeys(("gh", "aws", "gcloud", "mise"), 2),
    **dict.fromkeys(_ONE_WORD, 1),
}
"""How many words after the program say what it does: `gh pr view`, `git log`."""
_RUNNERS = re.compile(
    r"(?:npx|bunx|uvx|(?:uv|poetry|pipenv|hatch|pdm|rye) run|(?:pnpm|yarn|bundle|mise) exec(?: --)?"
    r"|python[\d.]* -m) (?=[\w.])"
)
"""What runs another program, which is what counts: `npx tsc` is a `tsc`."""
_VERSION = re.compile(r"(?<=[a-z])[\d.]+$")
_TAKES_A_VALUE = {
    "git": ("-C", "-c"),
    "make": ("-C", "-f"),
    "docker": ("-H",),
    "uv": ("--directory",),
}


_COMMAND_TOOLS = frozenset(
    {"bash", "shell", "local_shell", "exec_command", "execute_command", "run_command", "terminal"}
    | {"run_terminal_cmd", "container.exec", "user_bash"}
)


def command_of(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """The command line of a call of a tool that runs one; None of any other tool's."""
    if tool.lower() not in _COMMAND_TOOLS:
        return None
    given = arguments.get("command") or arguments.get("cmd")
    if isinstance(given, list) and all(isinstance(word, str) for word in given):
        # `["bash", "-lc", "npm test"]`
        is_script = len(given) > 2 and given[1].startswith("-") and given[1].endswith("c")
        given = given[2] if is_script else " ".join(given)
    return given if isinstance(given, str) and given.strip() else None


@dataclass(frozen=True, slots=True)
class ShellStep:
    """One step of a command line, as far as a pipe: the program, and its words.

    text     as it stands, with what follows a pipe
    program  with the words that say what it does: `rg`, `git log`, `gh pr view`
    words    all words, quotes as they stand, without redirections and settings of variables
    """

    text: str
    program: str
    words: tuple[str, ...]


def steps(command: str) -> list[ShellStep]:
    """The steps of a command in order, each with the first program of its pipe.

    Here-documents and quoted texts are never taken for steps.
    """
    command = command.replace("\\\n", "  ")
    plain = _QUOTED.sub(
        lambda match: "'" + "_" * (len(match[0]) - 2) + "'", _without_bodies(command)
    )
    found, begin = [], 0
    for separator in [*_STEPS.finditer(plain), None]:
        end = len(plain) if separator is None else separator.start()
        step = _step(plain[begin:end], command[begin:end])
        if step is not None:
            found.append(step)
        begin = end if separator is None else separator.end()
    return found


def _without_bodies(command: str) -> str:
    """The command with blanks for its here-documents, as long as it was."""
    body = _HEREDOC_BODY.search(command)
    while body is not None:
        blank = " " * (body.end() - body.start(3))
        command = command[: body.start(3)] + blank + command[body.end() :]
        body = _HEREDOC_BODY.search(command, body.end())
    return command


def _step(plain: str, raw: str) -> ShellStep | None:
    before = _BEFORE.match(plain)
    begin = before.end() if before else 0
    pipe = plain.find("|", begin)
    spans = _WORD.finditer(plain, begin, len(plain) if pipe < 0 else pipe)
    words = tuple(raw[span.start() : span.end()] for span in spans)
    words = tuple(word for word in words if not _REDIRECTION.fullmatch(word))
    if not words or _ASSIGNMENT.match(words[0]):
        return None
    return ShellStep(raw.strip().rstrip(")").strip(), _name(words), words)


def _name(words: tuple[str, ...]) -> str:
    program = words[0].rpartition("/")[2]
    if runner := _RUNNERS.match(" ".join((program, *words[1:4]))):
        return _name(words[len(runner[0].split()) :])
    program = _VERSION.sub("", program)
    rest = list(words[1:])
    takes = _TAKES_A_VALUE.get(program, ())
    named = [program]
    while rest and len(named) <= _WORDS_OF_A_NAME.get(program, 0):
        word = rest.pop(0)
        if word in takes and rest:
            rest.pop(0)
        elif not word.startswith("-"):
            if not _PLAIN_WORD.fullmatch(word):
                break
            named.append(word)
    return " ".join(named)


def programs(command: str) -> set[str]:
    """The programs that begin the steps of a command, without those that say nothing: `rg`,
    `git log`."""
    found: set[str] = set()
    plain = _HEREDOC.sub("", _QUOTED_ON_A_LINE.sub("''", command))
    for step in _STEPS.split(plain):
        before = _BEFORE.match(step)
        words = step[before.end() if before else 0 :].split()
        if not words:
            continue
        program = words[0].rpartition("/")[2]
        if program == "git":
            verbs = [word for word in words[1:] if not word.startswith("-")]
            program = f"git {verbs[0]}" if verbs else program
        if program not in _SILENT:
            found.add(program)
    return found
