"""What a program says when it was called wrongly, and not when its work went wrong.

A test that fails, a file that does not compile, a lint finding: none of these is cured by another
form of the command. A misspelt option, a program that is not there, a path from another folder
are. Only the second kind is recognised here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    """The first complaint in an output.

    A command that is not known to have failed (what a pipe hides) complains only where it says
    little else.
    """
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
            return Complaint(_key(line), line.strip(), str(found.lastgroup))
    return None


def _key(line: str) -> str:
    return " ".join(_VARYING.sub("0", _PLACE.sub("/", line)).split())
