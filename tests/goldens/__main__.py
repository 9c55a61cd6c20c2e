"""The command `python -m goldens`, in the folder `tests`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from difflib import unified_diff
from multiprocessing import get_context
from pathlib import Path

import pytest

from goldens.lines import Golden, golden_of
from goldens.sessions import (
    FILES,
    HERE,
    GoldenSession,
    all_sessions,
    be_repeatable,
    keep,
    kept,
    prompt_at,
)


def main(arguments: Sequence[str]) -> int:
    """Run the command; 1 where prompts differ from the goldens that are kept."""
    options = _parser().parse_args(arguments)
    with pytest.MonkeyPatch.context() as patch:
        be_repeatable(patch)
        match options.action:
            case "show":
                print(_shown(options.name, options.call))
            case "diff":
                print(_diff(options.name, options.call, options.checkout))
            case action:
                return _compare(options.word, options.kept, options.workers, action == "write")
    return 0


def _compare(words: Sequence[str], folder: Path, workers: int, writes: bool) -> int:
    new, differ = _made(all_sessions(words, folder), workers), 0
    for kind in FILES:
        old = kept(kind, folder)
        made = {name: golden for name, golden in new.items() if name.startswith(kind)}
        for name, golden in sorted(made.items()):
            said = old[name].difference(golden) if name in old else "is new"
            differ += bool(said)
            if said:
                print(f"{name}: {said}")
        if writes and made:
            keep(kind, folder, old | made if words else made)
    print(f"{differ} of {len(new)} sessions differ.")
    return int(bool(differ) and not writes)


def _made(sessions: Sequence[GoldenSession], workers: int) -> dict[str, Golden]:
    """The goldens of sessions by name, with a word on how far it is."""
    made: dict[str, Golden] = {}
    with get_context("fork").Pool(workers) as pool:
        for name, golden in pool.imap_unordered(_make, sessions):
            made[name] = golden
            if sys.stderr.isatty():
                print(f"\r{len(made)} of {len(sessions)}\r", end="", file=sys.stderr)
    return made


def _make(session: GoldenSession) -> tuple[str, Golden]:
    return session.name, golden_of(session.prompts())


def _shown(name: str, call: int) -> str:
    """A prompt of the session of that name. Raises SystemExit where there is none."""
    found = [prompt_at(each, call) for each in all_sessions([name]) if each.name == name]
    if not any(found):
        raise SystemExit(f"There is no call {call} of a session {name!r}.")
    return found[0]


def _diff(name: str, call: int, other: Path) -> str:
    """How a prompt differs from what another checkout would send."""
    ran = subprocess.run(
        [other / ".venv/bin/python", "-m", "goldens", "show", name, str(call)],
        **{"cwd": other / "tests", "check": True, "text": True, "stdout": subprocess.PIPE},
    )
    old, new = ran.stdout.splitlines(), _shown(name, call).splitlines()
    return "\n".join(unified_diff(old, new, str(other), "here", lineterm=""))


def _folder(name: str) -> Path:
    """A folder that exists from now on."""
    folder = Path(name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m goldens",
        description="Compare the prompts of recorded sessions and of scripts with the hashes that "
        "are kept of them.",
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for name, help in (
        ("check", "say which sessions differ from their goldens, and from which call on"),
        ("write", "the same, and keep the new goldens"),
    ):
        action = actions.add_parser(name, help=help)
        action.add_argument("word", nargs="*", help="only sessions with all these words")
        action.add_argument(
            "--kept",
            type=_folder,
            default=HERE,
            metavar="FOLDER",
            help="where goldens of all recorded sessions are kept, to compare two checkouts "
            "(default: here, with those that the tests replay)",
        )
        action.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    for name, help in (
        ("show", "print the prompt of a call"),
        ("diff", "compare the prompt of a call with what another checkout sends"),
    ):
        action = actions.add_parser(name, help=help)
        action.add_argument("name", help="of a session, as `check` prints it")
        action.add_argument("call", type=int, help="from 1")
    action.add_argument("checkout", type=Path, help="one that has been set up")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
