"""In which form a command worked soon after it had failed in another.

A *lesson* is a pair of acts of one session: one that a program complained about, and a later one
by which the same was done. The next command with the same complaint is answered with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from foredeck.commands import steps
from foredeck.model.figures import cut
from foredeck.search.secrets import mask_secrets
from foredeck.store.clock import MINUTE_MS

WITHIN_COMMANDS = 8
"""The form that works must follow the one that failed within this many commands, and so soon."""
WITHIN_MS = 15 * MINUTE_MS
ALIKE = 0.5
"""Share of their terms that two calls must have in common to be the same act."""
MAX_OPEN = 20
"""Failures of one session that wait for a form that works."""

TYPED_CHARS = 200
"""Of a form that worked, as it is shown."""

_OUTPUT_ONLY = re.compile(r"\s+2>&1|\s*\|&?\s*(?:head|tail)\b(?:\s+-?[\w=-]+)*\s*$")
_SILENT = frozenset(
    {"echo", "pwd", "export", "set", "true", "false", "sleep", "source", "printf", "exit", ".", ":"}
    | {"for", "do", "done", "if", "then", "else", "fi", "while", "{", "}", "test", "[", "[["}
)
"""Steps that do nothing of which there could be another form."""
_HEX = re.compile(r"\b[0-9a-f]{7,40}\b")
_DIGITS = re.compile(r"\d+")
_PARTS = re.compile(r"[/=?&,]+")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_HELP = re.compile(r"(?:^|\s)(?:--help|-h|help|--version)(?:\s|$)")
"""A call that only explains how to call the program: not a form that works."""
_EXPECTS_FAILURE = re.compile(r"2>\s*/dev/null|&>\s*/dev/null|\|\|")
"""A command that expects to fail, and may have hidden that it did."""
_SAME_OBJECTS = frozenset({"remote", "shell"})
"""Kinds of complaints that are cured without naming other things: the form that works names the
same, no more and no fewer."""
_KEPT_OBJECTS = frozenset({"program", "selection", "permission"})
"""Kinds after which it may name more, but must still name those."""
_ALIKE_BY_KIND = {"path": 0.75}
"""Where a path was wrong, calls must be more alike than that: only nearly the same call is cured
by the same other path."""


@dataclass(frozen=True, slots=True)
class Run:
    """One command that a session ran, with what came out."""

    session: str
    time_ms: int
    command: str
    output: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Act:
    """One step of a command line, in the folder that the line goes to before it.

    terms  of its words, without what varies: numbers, hashes, quoted sentences
    """

    program: str
    text: str
    words: tuple[str, ...]
    folder: str | None = None

    @property
    def terms(self) -> frozenset[str]:
        """What two calls are compared by: their words, paths in parts."""
        found: set[str] = set()
        for word in self.words:
            path, _, query = _plain(word).partition("?")
            found.update(part for part in _PARTS.split(path) if part)
            found.update(f"-{part}" for part in _PARTS.split(query) if part)
        return frozenset(found)

    @property
    def form(self) -> tuple[str, ...]:
        """What must differ for two calls to be two forms of one act."""
        return (self.folder or "", *sorted({_plain(word, keep_quotes=True) for word in self.words}))


@dataclass(frozen=True, slots=True)
class Lesson:
    """A form of a command that failed, and the one that worked.

    program    of both: `gh pr diff`
    complaint  what was complained of, without what varies (`Complaint.key`)
    failed     the terms of the one that failed
    worked     the form of the one that worked
    text       what worked, as it was typed
    kept       share of the terms that both have
    """

    program: str
    complaint: str
    failed: frozenset[str]
    worked: tuple[str, ...]
    text: str
    session: str
    time_ms: int
    kept: float


@dataclass(slots=True)
class _Failure:
    run: Run
    complaint: Complaint
    acts: Sequence[Act]
    age: int = 0
    """Commands since."""


@dataclass(slots=True)
class SessionLessons:
    """Learns from the commands of one session, in their order."""

    _open: list[_Failure] = field(default_factory=list)

    def take(self, run: Run) -> list[Lesson]:
        """The lessons that a command completes: it did what one before it had failed to do."""
        if not was_run(run.output):
            return []
        said = complaint(run.output, failed=run.failed)
        for failure in self._open:
            failure.age += 1
        self._open = [f for f in self._open[-MAX_OPEN:] if _is_close(f, run)]
        if said is not None:
            self._open.append(_Failure(run, said, blamed(said, acts(run.command))))
        if said is not None or run.failed or not run.output.strip():
            return []
        made = acts(run.command)
        found = [lesson for f in self._open if (lesson := _lesson(f, run, made)) is not None]
        cured = {lesson.program for lesson in found}
        self._open = [f for f in self._open if not cured & {act.program for act in f.acts}]
        return found


@dataclass(slots=True)
class BranchLessons:
    """What the commands of one branch teach, taken in their order.

    earlier  lessons of the project's other sessions
    names    of the commands that were taken in, in their order: another branch has others
    """

    earlier: Sequence[Lesson] = ()
    names: list[str] = field(default_factory=list)
    own: list[Lesson] = field(default_factory=list)
    _learning: SessionLessons = field(default_factory=SessionLessons)

    def follow(self, commands: Iterable[tuple[str, Run]]) -> None:
        """Take in all commands of a branch, each with its name."""
        # Where they continue those that are known, only the new ones are read.
        given = list(commands)
        if [name for name, _run in given[: len(self.names)]] != self.names:
            self.names, self.own, self._learning = [], [], SessionLessons()
        for name, run in given[len(self.names) :]:
            self.names.append(name)
            self.own += self._learning.take(run)

    def answer(self, run: Run) -> Lesson | None:
        """The form in which a command that fails has worked before; those of the branch first."""
        return worked_as(run, self.own) or worked_as(run, self.earlier)


def worked_as(run: Run, lessons: Iterable[Lesson]) -> Lesson | None:
    """The lesson for a command that fails as one before it did.

    Of several the one whose failure is most alike, then the one that kept most of it, then the
    newest.
    """
    said = complaint(run.output, failed=run.failed) if was_run(run.output) else None
    known = [] if said is None else [lesson for lesson in lessons if lesson.complaint == said.key]
    if said is None or not known:
        return None
    fitting = [
        (round(alike(act.terms, lesson.failed), 1), lesson.kept, lesson.time_ms, lesson)
        for act in blamed(said, acts(run.command))
        for lesson in known
        if _is_answered(said, act, lesson)
    ]
    best = max(fitting, key=lambda fit: fit[:3], default=None)
    return None if best is None else best[3]


def _is_answered(said: Complaint, act: Act, lesson: Lesson) -> bool:
    """Whether a lesson is about an act that was complained of."""
    if act.program != lesson.program or act.form == lesson.worked:
        return False
    if said.kind == "remote" and _objects(act, said) - lesson.failed:
        return False
    return alike(act.terms, lesson.failed) >= _ALIKE_BY_KIND.get(said.kind, ALIKE)


def complains(run: Run) -> bool:
    """Whether a command was called wrongly: any other has no lesson."""
    return was_run(run.output) and complaint(run.output, failed=run.failed) is not None


def as_typed(lesson: Lesson) -> str:
    """The form that worked, on one line, cut short, without what only shortens its output."""
    return cut(mask_secrets(" ".join(_OUTPUT_ONLY.sub("", lesson.text).split())), TYPED_CHARS)


def acts(command: str) -> list[Act]:
    """The steps of a command that do something, each in its folder."""
    found: list[Act] = []
    folder: str | None = None
    for step in steps(command):
        if step.program == "cd":
            folder = " ".join(step.words[1:])
        elif step.program not in _SILENT:
            text = step.text if folder is None else f"cd {folder} && {step.text}"
            found.append(Act(step.program, text, step.words, folder))
    return found


def _plain(word: str, *, keep_quotes: bool = False) -> str:
    """A word without what varies; a quoted sentence is as good as any other."""
    word = _QUOTED.sub(lambda quoted: _unquoted(quoted[0], keep_quotes), word)
    return _DIGITS.sub("0", _HEX.sub("0", word))


def _unquoted(quoted: str, keep_quotes: bool) -> str:
    inner = quoted[1:-1]
    if not inner or re.search(r"\s", inner):
        return "''"
    return quoted if keep_quotes else inner


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of all terms that two calls have in common."""
    return len(one & other) / (len(one | other) or 1)


def _is_close(failure: _Failure, run: Run) -> bool:
    is_near = failure.age <= WITHIN_COMMANDS
    return is_near and abs(run.time_ms - failure.run.time_ms) <= WITHIN_MS


def _lesson(failure: _Failure, run: Run, made: Sequence[Act]) -> Lesson | None:
    """What a command that worked teaches about one that failed."""
    pairs = [
        (alike(wrong.terms, right.terms), wrong, right)
        for wrong in failure.acts
        for right in made
        if _is_cure(failure.complaint, wrong, right)
    ]
    if not pairs:
        return None
    share, wrong, right = max(pairs, key=lambda pair: pair[0])
    if share < ALIKE or wrong.form == right.form:
        return None
    return Lesson(
        right.program,
        failure.complaint.key,
        wrong.terms,
        right.form,
        right.text,
        run.session,
        run.time_ms,
        share,
    )


def _is_cure(said: Complaint, wrong: Act, right: Act) -> bool:
    """Whether one call may be what another should have been."""
    if right.program != wrong.program:
        return False
    if _HELP.search(right.text) or _EXPECTS_FAILURE.search(right.text):
        return False
    lost, added = _objects(wrong, said) - right.terms, _objects(right, said) - wrong.terms
    if said.kind == "path" and _names_place(wrong) and not _names_place(right):
        # It did not find the place either: it worked on what happened to be in its folder.
        return False
    if said.kind in _SAME_OBJECTS:
        return not lost and not added
    return said.kind not in _KEPT_OBJECTS or not lost


def _names_place(act: Act) -> bool:
    return bool(act.folder) or any("/" in word for word in act.words[1:])


def _objects(act: Act, said: Complaint) -> frozenset[str]:
    """The terms that say on what a call works, and not how; those complained of are left out."""
    return frozenset(
        term
        for term in act.terms
        if any(map(str.isalpha, term)) and term[0] not in "-." and term not in said.line
    )


def blamed(said: Complaint, made: Sequence[Act]) -> list[Act]:
    """The acts that a complaint may be about: those whose program it names, else all that do not
    expect to fail."""
    made = [act for act in made if not _EXPECTS_FAILURE.search(act.text)]
    named = [
        act
        for act in made
        if re.match(rf"(?:\S*[/:]\s*)?{re.escape(act.words[0].rpartition('/')[2])}\b", said.line)
    ]
    return named or made


# What a program says when it was called wrongly, and not when its work went wrong.
#
# A test that fails, a file that does not compile, a lint finding: none of these is cured by another
# form of the command. A misspelt option, a program that is not there, a path from another folder
# are. Only the second kind is recognised here.

SEARCHED_CHARS = 6000
"""At the beginning and at the end of an output: complaints are there."""
LINE_CHARS = 400
"""A longer line is data."""
QUIET_CHARS = 1500
"""An output that is longer than this is no complaint, unless the command is known to have
failed."""

_KINDS = {
    "option": (
        r"(?:unknown|unrecognized|unrecognised|invalid|illegal|no such|unexpected|bad|undefined)"
        r" (?:(?:shorthand|short|long|command[- ]line) )?"
        r"(?:options?|flags?|arguments?|switch|parameter|command|subcommand|predicate|primary)\b"
        r"|flag provided but not defined|unknown (?:command|subcommand|JSON field|shorthand)"
        r"|is not a [\w-]+ command|ambiguous option|requires an argument"
        r"|option .{1,60} (?:requires|not recognized)|Usage error|error: the following required"
    ),
    "program": (
        r"command not found|: not found$|is not recognized as an? (?:internal|cmdlet)"
        r"|No module named|Missing script|no such task|no tasks? .{0,40}found"
        r"|No rule to make target"
        r"|externally-managed-environment|could not determine executable|Cannot find module"
        r"|missing script|Command \"[^\"]+\" not found|script not found|no such command"
    ),
    "path": (
        r"[Nn]o such file or directory|directory not found|cannot find main module|no Go files in"
        r"|not a git repository|did not match any file|ambiguous argument"
        r"|cannot access|[Ii]s a directory|[Nn]ot a directory|ENOENT|outside main module"
        r"|file or directory not found|does not contain (?:main )?package|cannot find package"
        r"|no such package|outside repository|could not find `?Cargo\.toml|no required module"
    ),
    "shell": (
        r"syntax error near|parse error near|unexpected EOF while looking|bad substitution"
        r"|unmatched [\"'`(]|\(eval\):\d+: |jq: error|unexpected token \"|unterminated"
        r"|read-only variable|event not found|bad pattern|no matches found"
    ),
    "remote": r"\(HTTP 4\d\d\)",
    "selection": (
        r"build constraints exclude all|matched no packages|no tests ran|collected 0 items"
        r"|no test files? found|No tests? found|No test files|did not match any packages"
        r"|cannot write multiple packages"
    ),
    "permission": r"[Pp]ermission denied|EACCES|Operation not permitted|must be root|EPERM",
}
_ANY = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()), re.M)
_NOT_RUN = re.compile(
    r"<tool_use_error>|.{0,40}doesn't want to proceed with this tool use|\[Request interrupted"
    r"|\[foredeck\] No result|\s*(?:Command|Operation) aborted|\[removed\]"
)
"""How a result begins that no program has put out."""
_WORDS = (
    *("nknown", "nrecogni", "nvalid", "llegal", "o such", "nexpected", "bad ", "ndefined", "flag "),
    *("not a", "mbiguous", "requires", "Usage error", "required", "not found", "recognized"),
    *("No module", "issing script", "No rule", "managed-env", "executable", "annot find", "ENOENT"),
    *("directory", "no Go", "did not match", "no matches", "cannot access", "outside", "contain"),
    *("could not find", "syntax error", "parse error", "substitution", "nmatched", "(eval)"),
    *("jq: error", "nterminated", "read-only", "event not", "HTTP 4", "build con", "bad pat"),
    *("no packages", "no tests", "0 items", "no test", "No test", "denied", "EACCES", "permitted"),
    *("must be root", "EPERM", "tasks", "task ", "multiple packages"),
)
"""A line without any of these is not tried: looking for words is many times faster. So a pattern
that is added above needs its word here."""
_CODE = re.compile(
    r"^\s*(?!(?:\(eval\)|\w*sh):)(?:\d+[:\t]|[+\-|>#/*]|\S+:\d+:|at |File \"|===|ok |FAIL"
    r"|PASS|Exit code \d+$|\{)"
)
"""How a line of a program's own output begins: a place in a file, a difference, a test."""
_SPOKEN = re.compile(
    r"\s*(?:[\w./()-]{1,40}:\s|\(eval\):|unknown |unrecognized |package \S+: |stat )"
)
"""How a program begins what it says itself; anything else may be a text that it only shows."""
_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,40}\b|\d+")
_PLACE = re.compile(r"(?:~|\.{0,2})/[^\s:'\"`,)]*|(?<=[\s'\"`(])[\w.-]+/[^\s:'\"`,)]*")


@dataclass(frozen=True, slots=True)
class Complaint:
    """A line in which a program says that it was called wrongly.

    key   the line without what differs from call to call: paths, numbers, hashes
    line  as it is
    kind  `option`, `program`, `path`, `shell`, `remote`, `selection` or `permission`
    """

    key: str
    line: str
    kind: str


def was_run(output: str) -> bool:
    """Whether the command ran at all: the user may have refused it, or the host."""
    return _NOT_RUN.match(output) is None


def complaint(output: str, *, failed: bool) -> Complaint | None:
    """The first complaint in an output."""
    # A pipe hides that a command has failed. One that is not known to have failed complains only
    # where it says little else.
    if not failed and len(output) > QUIET_CHARS:
        return None
    if len(output) > 2 * SEARCHED_CHARS:
        output = f"{output[:SEARCHED_CHARS]}\n{output[-SEARCHED_CHARS:]}"
    words = [word for word in _WORDS if word in output]
    for line in output.split("\n") if words else ():
        is_short = len(line) < LINE_CHARS and any(word in line for word in words)
        found = _ANY.search(line) if is_short else None
        is_said = failed or _SPOKEN.match(line)
        if found is not None and is_said and not _CODE.match(line):
            key = " ".join(_VARYING.sub("0", _PLACE.sub("/", line)).split())
            return Complaint(key, line.strip(), str(found.lastgroup))
    return None
