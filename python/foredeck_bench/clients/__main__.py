"""Runs the agents of `scripts/setup agents` on the providers' twin, with and without foredeck.

    python -m foredeck_bench.clients [--client NAME]... [--option OPTION]... [SCENE ...]

Each row is one scene: requests, tokens of all prompts, input tokens at the price of fresh ones,
requests that no correct client sends, prompts that did not begin with the one before them, and the
last prompt, each without and with foredeck.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from pathlib import Path

from foredeck.cli.output import table
from foredeck_bench.clients.agents import CLIENTS, Client
from foredeck_bench.clients.runs import SceneRun, run_scene
from foredeck_bench.clients.stories import SCENES

_FIGURES: dict[str, Callable[[SceneRun], float]] = {
    "requests": lambda run: len(run.requests),
    "tokens": lambda run: run.tokens,
    "cost": lambda run: run.cost,
    "invalid": lambda run: run.invalid,
    "changes": lambda run: run.changes,
    "last prompt": lambda run: run.last,
}


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(
        prog="python -m foredeck_bench.clients",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenes", metavar="SCENE", nargs="*", help=f"of {', '.join(SCENES)}")
    parser.add_argument("--client", action="append", help="such as Codex (default: all)")
    parser.add_argument("--option", action="append", default=[], help="of `foredeck proxy`")
    options = parser.parse_args(arguments)
    clients = [each for each in CLIENTS if not options.client or each.name in options.client]
    rows, invalid = [("client", "scene", *_FIGURES, "dearer")], 0
    for client in clients:
        if client.missing:
            print(client.missing, file=sys.stderr)
            continue
        for scene in options.scenes or SCENES:
            plain, ours = compared(client, scene, options.option)
            invalid += plain.invalid + ours.invalid
            pairs = [f"{figure(plain):,.0f} {figure(ours):,.0f}" for figure in _FIGURES.values()]
            dearer = f"{100 * (ours.cost / plain.cost - 1):+.1f}%"
            rows.append((client.name, scene, *pairs, dearer))
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    print(table(rows))
    return 1 if invalid else 0


def compared(client: Client, scene: str, options: Sequence[str]) -> tuple[SceneRun, SceneRun]:
    """A scene without and with foredeck, in folders with names of one length."""
    with tempfile.TemporaryDirectory(prefix="foredeck-clients-") as folder:
        plain = run_scene(client, SCENES[scene], Path(folder, "0", "work"), proxied=False)
        return plain, run_scene(
            client, SCENES[scene], Path(folder, "1", "work"), proxied=True, options=options
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
