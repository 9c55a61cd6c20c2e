"""What a shell command runs, and how that went by its output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from foredeck.model.figures import shortened

_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)
_HEREDOC = re.compile(
    r"(?<!<)<<(?P<tabs>-)?[ \t]*(?P<quote>['\"]?)(?P<mark>\w+)(?P=quote)[^\n]*"
    r"(?P<body>\n(?P<text>.*?)(?:^(?(tabs)\t*)(?P=mark)[ \t]*$|(?P<open>\Z)))",
    re.MULTILINE | re.DOTALL,
)
_PLAIN_WORD = re.compile(r"[A-Za-z][\w:.@-]*")
_STEPS = re.compile(r"(?:^|(?<=\s))#.*|&&|\|\||[;\n]", re.MULTILINE)
_BEFORE = re.compile(r"[\s({]*(?:(?:\w+=\S*|sudo|time|env|command|timeout \S+|xargs)\s+)*")
_TRIVIAL = frozenset({"cd", "echo", "pwd", "export", "set", "mkdir", "true", "sleep", "source"})
_LEADING_CD = re.compile(r"\s*cd\s+(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s;&|\"']+))\s*(?:&&|;|\n)")
_WORD = re.compile(r"(?P<operator>(?:\d|&)?>{1,2}&?|<{1,3}-?)\s*(?P<target>[^\s<>]*)|[^\s<>]+")
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
"""Words after the program: `gh pr view`, `git log`."""
_RUNNERS = re.compile(
    r"(?:npx|bunx|uvx|(?:uv|poetry|pipenv|hatch|pdm|rye) run|(?:pnpm|yarn|bundle|mise) exec(?: --)?"
    r"|python[\d.]* -m) (?=[\w.])"
)
"""The inner program counts: `npx tsc` is a `tsc`."""
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
_SHELLS = frozenset({"bash", "sh", "zsh"})


def command_of(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """The command line of a tool that runs one."""
    if tool.lower() not in _COMMAND_TOOLS:
        return None
    command = joined(arguments.get("command") or arguments.get("cmd"))
    return command if isinstance(command, str) and command.strip() else None


def joined(command: Any) -> Any:
    """A command given as a list of words, most often `["bash", "-lc", COMMAND]`, as one text."""
    if not isinstance(command, list):
        return command
    is_script = len(command) == 3 and str(command[0]).rpartition("/")[2] in _SHELLS
    return command[2] if is_script else " ".join(map(str, command))


class Heredoc(NamedTuple):
    """A here-document that ends; `text` is None where the shell expands it."""

    start: int
    text: str | None


class ShellStep(NamedTuple):
    """A step of a command line, up to a pipe.

    `text`: with what follows a pipe; `program`: `rg`, `git log`, `gh pr view`; `words`: quotes as
    they stand, without settings of variables; `redirections`: operators and their targets,
    `(">", "log.txt")`; `is_piped`: another program reads the output.
    """

    text: str
    program: str
    words: tuple[str, ...]
    redirections: tuple[tuple[str, str], ...]
    heredoc: Heredoc | None
    is_piped: bool


def steps(command: str) -> list[ShellStep]:
    """A command's steps in order; here-documents and quoted texts are none."""
    command, heredocs = split_heredocs(command)
    command = command.replace("\\\n", "  ")
    plain = _QUOTED.sub(lambda match: "'" + "_" * (len(match[0]) - 2) + "'", command)
    parts, begin = [], 0
    for separator in [*_STEPS.finditer(plain), None]:
        end = len(plain) if separator is None else separator.start()
        heredoc = next((each for each in heredocs if begin <= each.start < end), None)
        step = _step(plain[begin:end], command[begin:end], heredoc)
        if step is not None:
            parts.append(step)
        begin = end if separator is None else separator.end()
    return parts


def split_heredocs(command: str) -> tuple[str, list[Heredoc]]:
    """The command without the texts of its here-documents, and these."""
    heredocs = []
    at = 0
    while (match := _HEREDOC.search(command, at)) is not None:
        text = re.sub(r"^\t+", "", match["text"], flags=re.M) if match["tabs"] else match["text"]
        is_literal = match["quote"] or not re.search(r"[$`\\]", text)
        if match["open"] is None:
            heredocs.append(Heredoc(match.start(), text if is_literal else None))
        at = match.start("body")
        command = command[:at] + command[match.end() :]
    return command, heredocs


def split_cd(command: str) -> tuple[str | None, str]:
    """A command's leading `cd` folder, if any, and the rest."""
    moved = _LEADING_CD.match(command)
    if moved is None:
        return None, command
    return next(filter(None, moved.groups())), command[moved.end() :]


def _step(plain: str, raw: str, heredoc: Heredoc | None) -> ShellStep | None:
    before = _BEFORE.match(plain)
    begin = before.end() if before else 0
    pipe = plain.find("|", begin)
    words, redirections = [], []
    for match in _WORD.finditer(plain, begin, len(plain) if pipe < 0 else pipe):
        if match["operator"] is None:
            words.append(raw[match.start() : match.end()])
        else:
            start, end = match.span("target")
            redirections.append((match["operator"], raw[start:end]))
    if not words or _ASSIGNMENT.match(words[0]):
        return None
    text = raw.strip().rstrip(")").strip()
    is_piped = pipe >= 0
    return ShellStep(text, _name(words), tuple(words), tuple(redirections), heredoc, is_piped)


def _name(words: Sequence[str]) -> str:
    program = words[0].rpartition("/")[2]
    if runner := _RUNNERS.match(" ".join([program, *words[1:4]])):
        return _name(words[len(runner[0].split()) :])
    program = _VERSION.sub("", program)
    rest = list(words[1:])
    takes = _TAKES_A_VALUE.get(program, ())
    words_of_name = [program]
    while rest and len(words_of_name) <= _WORDS_OF_A_NAME.get(program, 0):
        word = rest.pop(0)
        if word in takes and rest:
            rest.pop(0)
        elif not word.startswith("-"):
            if not _PLAIN_WORD.fullmatch(word):
                break
            words_of_name.append(word)
    return " ".join(words_of_name)


def programs(command: str) -> set[str]:
    """Programs that begin a command's steps, without trivial ones: `rg`, `git log`."""
    return {step.program for step in steps(command)} - _TRIVIAL


# An output without what its host has added at the end: a notice, how the command ended

_ENDED = re.compile(r"\n*(?:Command exited with code|exit code:?) (\d+)\s*\Z", re.IGNORECASE)
_NOTICE = re.compile(
    r"\n\n(?:\[(?:Showing l|\d+ more lines in file|Output truncated|[^\n]*limit reached"
    r"|[^\n]*truncated to )[^\n]*\]|\.\.\. \(\d+ more lines not shown[^\n]*\))\Z"
)
_DIFF_HEAD = re.compile(r"^(?:diff --git .*|index [0-9a-f]+\.\..*|--- a/.*)\n", re.MULTILINE)
_TAIL = 1000
"""Final characters that hold the host's additions."""


class ToolOutput(NamedTuple):
    """A tool's output."""

    body: str
    exit_code: int | None = None
    """None if unknown."""

    @classmethod
    def of(cls, text: str) -> ToolOutput:
        ended = _ENDED.search(text, max(0, len(text) - _TAIL))
        body = text[: ended.start()] if ended else text
        notice = _NOTICE.search(body, max(0, len(body) - _TAIL))
        if notice:
            body = body[: notice.start()]
        return cls(body, int(ended[1]) if ended else None)

    @property
    def named(self) -> str:
        if "diff --git " not in self.body:
            return self.body
        return _DIFF_HEAD.sub("", self.body).replace("\n+++ b/", "\n+++ ")


def plain_count(number: int, noun: str) -> str:
    """`1 hit`, `1200 hits`, as prompts have it (unlike `figures.counted`)."""
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
"""A quick test before patterns are tried."""

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
    """The last summary of tests or a build; for Go its packages."""
    ended = _GO.findall(text) if "ok  \t" in text or "FAIL\t" in text else []
    if ended:
        failed = [name for how, name in ended if how == "FAIL"]
        counts = [f"{plain_count(len(ended) - len(failed), 'package')} ok"]
        return [", ".join([*counts, f"FAIL {' '.join(failed)}"] if failed else counts)]
    return list(_lines(text[-SUMMED_UP_IN:], _SUMMARY, _SUMMARY_WORDS, 1, last=True))


def install_facts(text: str) -> list[str]:
    """What a package manager reports at the end."""
    return list(_lines(text[-SUMMED_UP_IN:], _INSTALL, _INSTALL_WORDS, 1, last=True))


def error_facts(text: str, most: int = MAX_FAILURES) -> list[str]:
    """Places of compiler errors, and the first failures."""
    places: dict[str, list[str]] = {}
    if "error" not in text and "Error" not in text:
        return list(_lines(text, _FAILURE, _FAILURE_WORDS, most))
    for one, line, other, rust, at in _DIAGNOSTIC.findall(text):
        places.setdefault(one or rust, []).append(line or other or at)
    summary = [_places(places)] if sum(map(len, places.values())) > 1 else []
    return [*summary, *_lines(text, _FAILURE, _FAILURE_WORDS, most - len(summary))]


def _places(places: dict[str, list[str]]) -> str:
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
    words = tuple(word for word in words if word in text)
    lines = text.split("\n") if words and most > 0 else []
    lines_seen: set[str] = set()
    for line in reversed(lines) if last else lines:
        if any(word in line for word in words) and pattern.match(line):
            short = _short(line)
            if short not in lines_seen:
                lines_seen.add(short)
                yield short
            if len(lines_seen) >= most:
                return


def _short(line: str) -> str:
    return shortened(_TIME.sub("", line.strip(" =")), LINE_CHARS)
