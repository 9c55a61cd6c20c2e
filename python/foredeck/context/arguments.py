"""A tool call's arguments in a few words, as lines of ours and lists show them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from foredeck.model.figures import shortened
from foredeck.sources.tool_calls import split_cd

ARGS_CHARS = 100

_LINE_END = re.compile(r"(?<![&|;{(\\])[ \t]*\n\s*")
"""Ends a step of a command, where that does not go on in the next line."""

_MOVES = re.compile(r"\b(?:cd|pushd)\b")


def args_display(args: Mapping[str, Any], cwd: str = "") -> str:
    """A tool call's arguments in a few words: the command, the path, or the JSON, cut short.

    Paths below `cwd` are shown relative to it, and a command's change to it is left out.
    """
    text = _main_argument(args, cwd)
    if text is None:
        text = json.dumps(args, ensure_ascii=False, sort_keys=True) if args else ""
    return shortened(text, ARGS_CHARS)


def _main_argument(args: Mapping[str, Any], cwd: str) -> str | None:
    """The argument that says what a call is about, with the range of a read and the like."""
    for name in ("command", "path", "file_path", "pattern", "query", "url", "id"):
        value = args.get(name)
        if isinstance(value, str) and value:
            extra = [
                f"{key}={relative_path(str(args[key]), cwd)}"
                for key in ("path", "glob", "offset", "limit")
                if key != name and isinstance(args.get(key), str | int)
            ]
            shown = _command(value, cwd) if name == "command" else relative_path(value, cwd)
            return " ".join([shown, *extra])
    return None


def _command(command: str, cwd: str) -> str:
    """A command on one line, as it could be given in `cwd`: with `cd` only to what is below."""
    folder, rest = split_cd(command.strip())
    here, folder = cwd.rstrip("/"), relative_path((folder or ".").rstrip("/") or "/", cwd)
    if folder in (here, "."):
        if here and not _MOVES.search(rest):
            rest = re.sub(rf"(?<![\w./~-]){re.escape(here)}/(?=[\w.])", "", rest)
    else:
        rest = f"cd {folder} && {rest}"
    return _LINE_END.sub("; ", rest.strip()).replace("\\\n", " ")


def relative_path(text: str, cwd: str) -> str:
    folder = cwd.rstrip("/") + "/"
    return text[len(folder) :] if len(folder) > 1 and text.startswith(folder) else text
