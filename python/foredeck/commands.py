"""What a shell command line runs, and what its output says of how that went."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from foredeck.model.figures import shortened

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


class ShellStep(NamedTuple):
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


# An output without what its host has added at the end: a notice, how the command ended

_ENDED = re.compile(r"\n*(?:Command exited with code|exit code:?) (\d+)\s*\Z", re.IGNORECASE)
_NOTICE = re.compile(
    r"\n\n(?:\[(?:Showing l|\d+ more lines in file|Output truncated|[^\n]*limit reached"
    r"|[^\n]*truncated to )[^\n]*\]|\.\.\. \(\d+ more lines not shown[^\n]*\))\Z"
)
_DIFF_HEAD = re.compile(r"^(?:diff --git .*|index [0-9a-f]+\.\..*|--- a/.*)\n", re.MULTILINE)
_TAIL = 1000
"""What the host adds is in this many characters at the end."""


class ToolOutput(NamedTuple):
    """What a tool has put out."""

    body: str
    exit_code: int | None = None
    """What it is said to have been; None where that is not said."""

    @classmethod
    def of(cls, text: str) -> ToolOutput:
        """From a result as the host gives it."""
        ended = _ENDED.search(text, max(0, len(text) - _TAIL))
        body = text[: ended.start()] if ended else text
        notice = _NOTICE.search(body, max(0, len(body) - _TAIL))
        if notice:
            body = body[: notice.start()]
        return cls(body, int(ended[1]) if ended else None)

    @property
    def named(self) -> str:
        """The body for its names: of a difference each path once, and as it is."""
        if "diff --git " not in self.body:
            return self.body
        return _DIFF_HEAD.sub("", self.body).replace("\n+++ b/", "\n+++ ")


def plain_count(number: int, noun: str) -> str:
    """`1 hit`, `1200 hits`: in prompts, where thousands are not set apart (`figures.counted`)."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# Facts of runs: tests, builds and checks, installations

_TESTS = re.compile(
    r".*\b\d+ (?:passed|failed|passing|failing|examples?|tests? (?:passed|failed))\b"
    r"|test result: |Tests?:? +.*\d|(?:#|ℹ) (?:pass|fail) \d|OK \(|FAILED \(|Ran \d+ tests?"
)
_BUILD = re.compile(
    r".*\b\d+ (?:errors?|problems?)\b|error: could not compile|BUILD [A-Z]+|Build [a-z]+"
    r"|.*\bbuilt in |make: \*\*\* |\s*Finished "
)
_INSTALL = re.compile(
    r"added \d+ packages?|(?:removed|changed|audited) \d+ packages?|up to date"
    r"|Successfully installed |Installed \d+ packages?|Packages: [+-]\d|\d+ upgraded, "
    r"|Installing collected packages|Requirement already satisfied"
)
_INSTALL_WORDS = ("package", "up to date", "nstall", "Packages: ", "upgraded", "Requirement")
_SUMMARY = re.compile(f"(?:{_TESTS.pattern})|(?:{_BUILD.pattern})")
_SUMMARY_WORDS = (
    *("passed", "failed", "passing", "failing", "example", "Test", "test result", "Ran ", "OK ("),
    *("# ", "ℹ ", "FAILED (", "error", "problem", "uil", "BUILD ", "***", "Finished "),
)
_FAILURE = re.compile(
    r"FAILED |--- FAIL: |\s*(?:✗|✕|×|✖|not ok) "
    r"|.*\berror(?:\[\w+\]|\s+TS\d+)?: [\w'\"`]|\w*(?:Error|Exception): "
)
_FAILURE_WORDS = ("FAIL", "✗", "✕", "×", "✖", "not ok", "rror", "Exception: ")
"""A line without any of these need not be tried: looking for words is many times faster."""

_GO = re.compile(r"^(ok  |FAIL)\t(\S+)\t", re.MULTILINE)
_DIAGNOSTIC = re.compile(
    r"^(?:([^\s:()]+)(?:\((\d+),\d+\)|:(\d+)(?::\d+)?): (?:fatal )?error\b"
    r"| *--> ([^\s:]+):(\d+):\d+)",
    re.MULTILINE,
)
_TIME = re.compile(r" in [\d.]+ ?m?s\b| \([\d.]+ ?m?s\)|\b[\d.]+m?s$")

SUMMED_UP_IN = 6000
"""Characters at the end of an output."""

MAX_FAILURES = 2
MAX_FILES = 3
MAX_LINES = 12
LINE_CHARS = 120


def test_facts(text: str) -> list[str]:
    """The last summary of a test run or a build; of Go how its packages ended."""
    ended = _GO.findall(text) if "ok  \t" in text or "FAIL\t" in text else []
    if ended:
        failed = [name for how, name in ended if how == "FAIL"]
        counts = [f"{plain_count(len(ended) - len(failed), 'package')} ok"]
        return [", ".join([*counts, f"FAIL {' '.join(failed)}"] if failed else counts)]
    return list(_lines(text[-SUMMED_UP_IN:], _SUMMARY, _SUMMARY_WORDS, 1, last=True))


def install_facts(text: str) -> list[str]:
    """What a package manager says that it did, at the end."""
    return list(_lines(text[-SUMMED_UP_IN:], _INSTALL, _INSTALL_WORDS, 1, last=True))


def error_facts(text: str, most: int = MAX_FAILURES) -> list[str]:
    """Where the errors of a compiler or checker are, and the first failures in words."""
    places: dict[str, list[str]] = {}
    if "error" not in text and "Error" not in text:
        return list(_lines(text, _FAILURE, _FAILURE_WORDS, most))
    for one, line, other, rust, at in _DIAGNOSTIC.findall(text):
        places.setdefault(one or rust, []).append(line or other or at)
    summary = [_places(places)] if sum(map(len, places.values())) > 1 else []
    return [*summary, *_lines(text, _FAILURE, _FAILURE_WORDS, most - len(summary))]


def _places(places: dict[str, list[str]]) -> str:
    """`errors: a.ts 3 17, b.ts 40`, by line."""
    ranked = sorted(places.items(), key=lambda item: (-len(item[1]), item[0]))
    listed = [
        f"{name} {' '.join(dict.fromkeys(lines[:MAX_LINES]))}{' ...' * (len(lines) > MAX_LINES)}"
        for name, lines in ranked[:MAX_FILES]
    ]
    count = plain_count(sum(map(len, places.values())), "error")
    return f"{count}: {', '.join(listed)}{', ...' if len(ranked) > MAX_FILES else ''}"


def _lines(
    text: str, pattern: re.Pattern[str], words: tuple[str, ...], most: int, *, last: bool = False
) -> Iterator[str]:
    """The first lines that begin as the pattern says, or the last ones, each once, cut short."""
    words = tuple(word for word in words if word in text)
    lines = text.split("\n") if words and most > 0 else []
    seen: set[str] = set()
    for line in reversed(lines) if last else lines:
        if any(word in line for word in words) and pattern.match(line):
            short = _short(line)
            if short not in seen:
                seen.add(short)
                yield short
            if len(seen) >= most:
                return


def _short(line: str) -> str:
    return shortened(_TIME.sub("", line.strip(" =")), LINE_CHARS)
