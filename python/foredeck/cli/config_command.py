"""`foredeck config`: every setting, its value, and where it came from."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import asked_folder, resolve_config
from foredeck.cli.output import coloured, print_json, table
from foredeck.cli.registry import COMMANDS, load
from foredeck.config import Resolved, project_config_file, user_config_file

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
    files = _files(args)
    if args.json:
        left_out = list(resolved.left_out)
        print_json({"values": _values(resolved), "files": files, "left_out": left_out})
    else:
        _print_text(resolved, files)
    return 0


def _values(resolved: Resolved) -> dict[str, Any]:
    plain = resolved.config.model_dump(mode="json")
    return {
        key: {"value": _dig(plain, key), "origin": origin.kind, "place": origin.place or None}
        for key, origin in resolved.origins.items()
    }


def _files(args: Namespace) -> list[dict[str, Any]]:
    return [
        _file("user", user_config_file(), read=True),
        _file("project", project_config_file(asked_folder(args)), read=args.trusted),
    ]


def _file(layer: str, path: Path, *, read: bool) -> dict[str, Any]:
    exists = path.is_file()
    return {"layer": layer, "path": str(path), "exists": exists, "read": exists and read}


def _print_text(resolved: Resolved, files: list[dict[str, Any]]) -> None:
    rows = []
    for key, entry in _values(resolved).items():
        origin = str(resolved.origins[key])
        rows.append((key, coloured(origin, "dim"), _shown(entry["value"])))
    print(table(rows))
    print()
    for file in files:
        print(f"{file['layer']} file: {file['path']} ({_state(file)})")
    for text in resolved.left_out:
        print(f"left out: {text}")


def _state(file: dict[str, Any]) -> str:
    if not file["exists"]:
        return "does not exist"
    if file["read"]:
        return "read"
    return "not read: it applies where Pi trusts the project, and here with --trusted"


def _dig(values: Any, key: str) -> Any:
    for part in key.split("."):
        values = values[part]
    return values


def _shown(value: Any) -> str:
    if value is None:
        return "unset"
    return value if isinstance(value, str) else json.dumps(value)


def _completion() -> str:
    """A script for bash, and for zsh by its `bashcompinit`: commands, actions and options; after
    these names of files."""
    # Commands of a checkout are of two words, which the script does not complete.
    names = [name for name in COMMANDS if not name.startswith("bench")]
    cases = "\n".join(f'    {name}) choices="{" ".join(_words(name))}" ;;' for name in names)
    return _SCRIPT.format(names=" ".join(names), cases=cases)


def _words(name: str) -> list[str]:
    """What may be typed after a command."""
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
