"""Runs the agents of `scripts/setup agents` on the providers' twin, with and without foredeck.

    python -m foredeck_bench.clients [--client NAME]... [--option OPTION]... [SCENE ...]

Each row is one scene: requests, tokens of all prompts, input tokens at the price of fresh ones,
requests that no correct client sends, prompts that did not begin with the one before them, and the
last prompt, each without and with foredeck.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from foredeck.cli.output import table
from foredeck_bench.clients.agents import (
    CLIENTS,
    KEY,
    SCENES,
    Client,
    Scene,
    Story,
    UserTurn,
    is_summary,
)
from foredeck_bench.twin.prompts import Segment, segments
from foredeck_bench.twin.server import RecordedRequest, ScriptedModel

PROXY = (sys.executable, "-m", "foredeck.cli.main", "proxy")
_TURN_S = 900


@dataclass(frozen=True)
class SceneRun:
    """The outcome of a session; `shown`: what its user saw."""

    model: ScriptedModel
    shown: str

    @property
    def requests(self) -> Sequence[RecordedRequest]:
        """Those that the model has answered."""
        return [each for each in self.model.requests if each.usage is not None]

    @property
    def main(self) -> Sequence[RecordedRequest]:
        """Requests of the conversation, without titles, searches and summaries."""
        return [
            each
            for each in self.requests
            if len(each.request.tools) > 1 and not is_summary(each.request)
        ]

    @property
    def tokens(self) -> int:
        return sum(each.usage.prompt for each in self.requests if each.usage)

    @property
    def cost(self) -> float:
        usages = [each.usage for each in self.requests if each.usage]
        return sum(usage.uncached + 0.1 * usage.read + 1.25 * usage.written for usage in usages)

    @property
    def invalid(self) -> int:
        """Requests that no correct client sends."""
        return len({violation.request for violation in self.model.violations})

    @property
    def last(self) -> int:
        return self.main[-1].usage.prompt if self.main and self.main[-1].usage else 0

    @property
    def changes(self) -> int:
        """How often a prompt did not begin with the one before it."""
        newest: dict[tuple[str, str], Sequence[Segment]] = {}
        count = 0
        for each in self.main:
            request = each.request
            user_messages = (m for m in request.messages if m.get("role") == "user")
            conversation = (request.system[:200], str(next(user_messages, ""))[:2000])
            rows = segments(request)
            before = newest.get(conversation)
            if before is not None:
                count += not {row.prefix for row in rows}.issuperset({before[-1].prefix})
            newest[conversation] = rows
        return count


def run_scene(
    client: Client, scene: Scene, folder: Path, *, proxied: bool, options: Sequence[str] = ()
) -> SceneRun:
    """Runs each turn in processes of its own; `options` are for `foredeck proxy`. Raises
    `RuntimeError`."""
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    turns, story = scene(client, folder)
    output = ""
    with ScriptedModel(story) as model:
        base = client.address(model.url)
        for number, turn in enumerate(turns):
            story.begin(turn)
            if proxied and story.pause is not None:
                with _standing(client, base, folder, story) as address:
                    result = _turn(client, address, folder, turn, number > 0, None)
            else:
                turn_options = options if proxied and not turn.direct else None
                result = _turn(client, base, folder, turn, number > 0, turn_options)
            output += result.stdout
            if result.returncode != 0 or "foredeck:" in result.stderr:
                raise RuntimeError(f"{client.name}: {result.stderr}{result.stdout}")
    return SceneRun(model, output)


def _turn(
    client: Client,
    base: str,
    folder: Path,
    turn: UserTurn,
    goes_on: bool,
    options: Sequence[str] | None,
) -> subprocess.CompletedProcess[str]:
    """One turn of the user's; without `options` there is no proxy."""
    arguments, variables = client.settings(base if options is None else None, turn.compacts)
    command = [str(client.program), *arguments, *client.asked(turn.text, goes_on)]
    if options is not None:
        command = [*PROXY, *options, "--upstream", base, "--", *command]
    return subprocess.run(
        command,
        cwd=folder,
        env={**environment(folder), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TURN_S,
        check=False,
    )


@contextmanager
def _standing(client: Client, base: str, folder: Path, story: Story) -> Iterator[str]:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    token = folder.parent / "token"
    command = [*PROXY, "--port", str(port), "--token-file", str(token), "--upstream", base]

    def start() -> subprocess.Popen[str]:
        started = subprocess.Popen(
            command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True
        )
        # It serves once it says where.
        assert started.stdout is not None
        started.stdout.readline()
        return started

    running = [start()]

    def restart() -> None:
        story.restarts.wait()
        # The call is on its way to the agent.
        time.sleep(1)
        _end(running.pop())
        running.append(start())

    restarting = threading.Thread(target=restart, daemon=True)
    restarting.start()
    try:
        yield f"http://127.0.0.1:{port}/{token.read_text().strip()}/{client.provider}"
    finally:
        if story.restarts.is_set():
            restarting.join()
        _end(running.pop())


def _end(process: subprocess.Popen[str]) -> None:
    with process:
        process.kill()


def environment(folder: Path) -> dict[str, str]:
    home = folder.parent / f"home of {folder.name}"
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "FOREDECK_HOME": str(home / "foredeck"),
        "ANTHROPIC_API_KEY": KEY,
        "OPENAI_API_KEY": KEY,
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    }


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
