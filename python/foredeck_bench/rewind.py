"""Rewinding that is killed half-way: each file is old or new, and the next one finishes it.

Each round makes a session with random edits, writes, moves, deletions and commands, rewinds it to
a random call in a process that is killed at some file, has a person change a file meanwhile in
every other round, and then goes on.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress
from foredeck.cli.registry import Command
from foredeck.config import Config
from foredeck.store.kind import open_store
from foredeck.timeline.rewinding import apply, go_on, interrupted, plan_for_call
from foredeck_bench.arguments import print_figures
from foredeck_bench.file_agent import FileAgent

Advance = Callable[[str], None]
Tree = dict[str, tuple[bytes, int]]
PERSON = b"a person's\n"
NAMES = ("a.txt", "b.txt", "sub/c.txt", "sub/d.py", "Makefile")
COMMANDS = (
    "printf {n} >> {a}",
    "rm -f {a}",
    "mkdir -p sub; test -e {a} && mv {a} {b}",
    "mkdir -p sub; test -e {a} && cp {a} {b}",
    "test -e {a} && chmod 755 {a}",
    "sed -i s/1/one/ $(find . -type f)",
)
KILLED_PROGRAM = "from foredeck_bench.rewind import killed_rewind; killed_rewind()"


def tree(folder: Path) -> Tree:
    """Every file below a folder, with its bytes and permissions."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def run_rewind(
    rounds: int = 100, seed: int = 1, advance: Advance = lambda _note: None
) -> dict[str, Any]:
    """What `foredeck bench rewind --json` prints."""
    chosen = random.Random(seed)
    found = {"rounds": 0, "interrupted": 0, "named": 0, "torn": 0, "wrong": 0, "persons_lost": 0}
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="foredeck-rewind-") as name:
            _round(Path(name), chosen, number, found)
        advance(f"{number + 1} rounds")
    return {**found, "ok": not (found["torn"] or found["wrong"] or found["persons_lost"])}


def _round(root: Path, chosen: random.Random, number: int, found: dict[str, int]) -> None:
    folder, home = root / "work", root / "home"
    states = _session(home, folder, chosen)
    call = chosen.randrange(1, len(states))
    before, wanted = tree(folder), states[call - 1]
    # On a busy machine a command may run before its files were read: those are named, and stay.
    with closing(open_store(Config(home=home))) as store:
        named = {os.path.relpath(p, folder) for p in plan_for_call(store, "s", call).uncovered}
    _kill_rewinding(home, call, chosen.randrange(4))
    found["rounds"] += 1
    found["named"] += len(named)
    half = tree(folder)
    found["torn"] += any(
        half.get(path) not in (before.get(path), wanted.get(path)) for path in {*before, *half}
    )
    undone = sorted(path for path in {*half} - named if half[path] != wanted.get(path))
    saved = undone[0] if undone and number % 2 else None
    if saved is not None:
        (folder / saved).write_bytes(PERSON)
    with closing(open_store(Config(home=home))) as store:
        steps = interrupted(home, "s")
        if steps is not None:
            found["interrupted"] += 1
            go_on(store, home, "s", steps)
    after = tree(folder)
    if saved is not None:
        found["persons_lost"] += after.pop(saved, (b"", 0))[0] != PERSON
        wanted.pop(saved, None)
    for path in named:
        after.pop(path, None)
        wanted.pop(path, None)
    found["wrong"] += steps is not None and after != wanted


def _session(home: Path, folder: Path, chosen: random.Random) -> list[Tree]:
    """The files as they were at each call of a session."""
    (folder / "sub").mkdir(parents=True)
    for name in NAMES[:3]:
        (folder / name).write_text(f"1 and 2\n{name}\n")
    states: list[Tree] = []
    with closing(FileAgent(home, folder)) as agent:
        for _ in range(4):
            agent.answer()
            states.append(tree(folder))
            for _ in range(chosen.randrange(1, 4)):
                _act(agent, chosen)
        agent.answer()
        states.append(tree(folder))
    return states


def _act(agent: FileAgent, chosen: random.Random) -> None:
    a, b = chosen.sample(NAMES, 2)
    n = chosen.randrange(1000)
    if chosen.randrange(3):
        agent.call("bash", command=chosen.choice(COMMANDS).format(a=a, b=b, n=n))
    else:
        agent.call("write", path=a, content=f"{n}\n1 and 2\n")


def _kill_rewinding(home: Path, call: int, files: int) -> None:
    """Rewind in a process of its own, which is killed once it has come to so many files."""
    program = [sys.executable, "-P", "-c", KILLED_PROGRAM, str(home), str(call), str(files)]
    subprocess.run(program, check=False)


def killed_rewind() -> None:
    """The program of that process: its arguments are state folder, call and files."""
    home, call, left = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

    def kill(_path: str) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    with closing(open_store(Config(home=home))) as store:
        plan = plan_for_call(store, "s", call)
        apply(store, home, "s", plan, advance=kill)


# The command


def _run(args: Namespace) -> int:
    with Progress("rewinding", total=args.rounds) as progress:
        found = run_rewind(args.rounds, args.seed, lambda note: progress.advance(note=note))
    print_figures({"seed": args.seed, **found}, args)
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=100,
        help="sessions that are rewound (default: %(default)s)",
    )
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="do the same again")
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Rewind sessions of random edits, writes, moves, deletions and commands to a random call,\n"
        "kill the process at one of the files, have a person change a file in every other round,\n"
        "and go on. Exit code 1 where a file was neither old nor new, where the files were not\n"
        "what they had been in the end, or where the person's change was lost."
    ),
    example="foredeck bench rewind --rounds 100 --json",
    configure=_configure,
    run=_run,
)
