"""How long the real Pi takes to its first model call in a repository of so many hostile files.

    .venv/bin/python tests/hostile/many.py [FILES]

Pi alone, then with foredeck at its first and its second start. The deadline is long, so that the
figures say by how much foredeck would miss the one that users have (3 s); all else is as they have
it. The processor's time is that of the whole run, Pi and engine: where other programs keep the
machine busy, only that can be compared.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from foredeck.config import Config
from foredeck.store.place import open_store
from foredeck_bench.scripted.pi_process import VERSIONS, PiWorkspace, checkout_pi, write_agent_dir
from foredeck_bench.twin.server import ScriptedModel
from pi_runs import run_print

CHECKOUT = Path(__file__).parents[2]
LONG = {"FOREDECK_DEADLINE_MS": "30000"}
SLOW = ("![](", "[![](", "- a\n", "|a|b|\n|-|-|\n", "[[a]] ", "#t ", "> " * 40 + "\n", "`")


def fill(repo: Path, count: int) -> None:
    """Put so many notes into a repository, each of which tries something."""
    luck, notes = random.Random(count), repo / "notes"
    for number in range(count):
        file = notes / f"{number % 97}" / f"{number}\u202e.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        match number % 10:
            case 0:
                file.symlink_to(luck.choice(["../../../user/keys.md", "/dev/zero", file.name, "/"]))
            case 1:
                os.mkfifo(file)
            case 2:
                file.write_text("# Slow\n" + luck.choice(SLOW) * luck.choice((20_000, 300_000)))
            case 3:
                file.write_text("---\na: &a [x]\nb: " + "[" * 5000 + "\n---\n# Bomb\n")
            case _:
                file.write_text(f"---\nkind: note\n---\n# {number}\n[[{number + 1}]] #tag\n")


def processor_s() -> float:
    """What the processes that this one has started and waited for have taken of the processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(count: int) -> None:
    """Print the figures, beside those of an empty repository: both have what this machine does
    meanwhile in them."""
    install = checkout_pi(CHECKOUT, VERSIONS[-1])
    assert install is not None, "run scripts/setup"
    for files in (0, count):
        with tempfile.TemporaryDirectory() as folder, ScriptedModel(["hello"] * 3) as model:
            workspace = PiWorkspace(Path(folder) / "pi")
            fill(workspace.repo, files)
            write_agent_dir(workspace.agent_dir, model.url)
            starts = {"Pi alone": [], "first start": [CHECKOUT], "second start": [CHECKOUT]}
            for what, extensions in starts.items():
                began, used = time.monotonic(), processor_s()
                run = run_print(
                    install, workspace, "hello", extensions=extensions, environment=LONG
                )
                first = model.requests[-1]
                print(
                    f"{files:,} files, {what}: first call after {first.time_s - began:.1f} s, "
                    f"end after {time.monotonic() - began:.1f} s, "
                    f"processor {processor_s() - used:.1f} s, exit code {run.code}, "
                    f"notes in the prompt: {'notes/' in first.request.text}. {run.stderr.strip()}"
                )
            with closing(open_store(Config(home=workspace.foredeck_home))) as store:
                print(f"{files:,} files, of them stored: {len(store.query('file')):,}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
