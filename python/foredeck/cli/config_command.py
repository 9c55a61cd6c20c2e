"""`foredeck config`: every setting, its value, and where it came from."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import asked_folder, resolve_config
from foredeck.cli.output import answer, fitted_table
from foredeck.cli.registry import COMMANDS, load
from foredeck.config import Resolved, ValueOrigin, project_config_file, user_config_file

_SCRIPT = """\
if [ -n "${{ZSH_VERSION:-}}" ]; then autoload -U +X bashcompinit && bashcompinit; fi
_foredeck() {{
  local choices="{names}"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    *) choices="" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$choices" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _foredeck foredeck"""


def run(args: Namespace) -> int:
    """`foredeck config`."""
    if args.completion:
        print(_completion())
        return 0
    resolved = resolve_config(args)
    files = [
        _file("user", user_config_file(), read=True),
        _file("project", project_config_file(asked_folder(args)), read=args.trusted),
    ]
    value = {"values": _values(resolved), "files": files, "left_out": list(resolved.left_out)}
    return answer(args, value, _lines(resolved, files))


def _values(resolved: Resolved) -> dict[str, Any]:
    values, origins = resolved.values, resolved.origins
    return {
        key: {"value": value, "origin": origins[key].kind, "place": origins[key].place or None}
        for key, value in values.items()
    }


def _file(layer: str, path: Path, *, read: bool) -> dict[str, Any]:
    exists = path.is_file()
    return {"layer": layer, "path": str(path), "exists": exists, "read": exists and read}


def _lines(resolved: Resolved, files: list[dict[str, Any]]) -> Iterator[str]:
    rows = [(key, _from(resolved.origins[key]), text) for key, text in resolved.texts.items()]
    yield fitted_table([("setting", "from", "value"), *rows], goes_on=True)
    yield ""
    yield from (f"{file['layer']} file: {file['path']} ({_state(file)})" for file in files)
    yield from (f"left out: {text}" for text in resolved.left_out)


def _from(origin: ValueOrigin) -> str:
    """The origin of a value, without its path if that is a file."""
    return f"{origin.kind} file" if origin.kind in ("user", "project") else str(origin)


def _state(file: dict[str, Any]) -> str:
    if not file["exists"]:
        return "does not exist"
    if file["read"]:
        return "read"
    return "not read: it applies where Pi trusts the project, and here with --trusted"


def _completion() -> str:
    """A completion script for bash, and for zsh by its `bashcompinit`."""
    # Commands of a checkout are of two words, which the script does not complete.
    names = [name for name in COMMANDS if not name.startswith("bench")]
    cases = "\n".join(f'    {name}) choices="{" ".join(_words(name))}" ;;' for name in names)
    return _SCRIPT.format(names=" ".join(names), cases=cases)


def _words(name: str) -> list[str]:
    parser = ArgumentParser(add_help=False)
    load(name).configure(parser)
    options = [word for action in parser._actions for word in action.option_strings]
    actions = [
        str(word)
        for action in parser._actions
        if not action.option_strings
        for word in action.choices or ()
    ]
    return ["--help", *options, *actions]
