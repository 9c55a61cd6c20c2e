"""A tool call's arguments in a few words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from foredeck.commands import split_cd
from foredeck.model.figures import shortened

ARGS_CHARS = 100

_LINE_END = re.compile(r"(?<![&|;{(\\])[ \t]*\n\s*")

_MOVES = re.compile(r"\b(?:cd|pushd)\b")


def args_display(args: Mapping[str, Any], cwd: str = "") -> str:
    """The command, the path, or the JSON; paths relative to `cwd`."""
    text = _main_argument(args, cwd)
    if text is None:
        text = json.dumps(args, ensure_ascii=False, sort_keys=True) if args else ""
    return shortened(text, ARGS_CHARS)


def _main_argument(args: Mapping[str, Any], cwd: str) -> str | None:
    for name in ("command", "path", "file_path", "pattern", "query", "url", "id"):
        value = args.get(name)
        if isinstance(value, str) and value:
            extra = [
                f"{key}={relative_path(str(args[key]), cwd)}"
                for key in ("path", "glob", "offset", "limit")
                if key != name and isinstance(args.get(key), str | int)
            ]
            main = _command(value, cwd) if name == "command" else relative_path(value, cwd)
            return " ".join([main, *extra])
    return None


def _command(command: str, cwd: str) -> str:
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
