"""`scripts/demo`: Pi with foredeck on a small sample repository.

By hand with a real model, else, or with FOREDECK_DEMO=scripted, by a scripted one.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from foredeck.accounting.figure import session_figure
from foredeck.config import Config, load_config
from foredeck.errors import Corrupt, ForedeckError
from foredeck.lookup.sessions import newest_call
from foredeck.store.place import open_store, store_place
from foredeck_bench.crash.stores import prepared
from foredeck_bench.demo.story import (
    PROMPT,
    TESTS,
    Turn,
    conclude,
    narrate,
    plan,
    second_script,
    story,
    told,
)
from foredeck_bench.demo.table import WIDTH, answers_in, call_rows, newest_session, render
from foredeck_bench.scripted.pi_process import (
    PATIENT,
    VERSIONS,
    PiInstall,
    PiWorkspace,
    checkout_pi,
    write_agent_dir,
)
from foredeck_bench.scripted.pi_rpc import RpcError, RpcPi
from foredeck_bench.twin.server import ScriptedModel
from foredeck_xtdb.node import own_node_folder


@dataclass(frozen=True, slots=True)
class DemoStore:
    """The store of one demo; `environment` chooses it."""

    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        environ = {"FOREDECK_HOME": str(self.home), **self.environment}
        return load_config(environ=environ, user_file=self.home / "no-user-configuration").config

    def settle(self) -> str | None:
        """Waits until XTDB has everything, and describes what it holds.

        Raises `StoreUnavailable`, or `Corrupt` if the local copy differs.
        """
        comparison = store_place(self.config).deliver_and_compare()
        if comparison is None:
            return None
        if comparison.differs or comparison.extra:
            differs = comparison.differs or f"{comparison.extra} more"
            raise Corrupt(f"XTDB and the local copy differ: {differs}")
        return f"{comparison.holds},\nall equal to the local copy."


@contextmanager
def demo_store(home: Path) -> Iterator[DemoStore]:
    """The store of the user's configuration, with state in `home`. Raises `StoreUnavailable`."""
    user = load_config(environ=os.environ).config
    if user.store != "xtdb":
        yield DemoStore(home)
        return

    own = own_node_folder(user.home)
    node = own.running() if user.xtdb.url is None else None
    url = user.xtdb.url or (None if node is None else node.url)
    namespace = f"demo-{secrets.token_hex(4)}"
    environment = {"FOREDECK_STORE": "xtdb", "FOREDECK_XTDB__NAMESPACE": namespace}
    if url is None:
        print("No XTDB node runs here: one is started for the demo, and stopped at its end.")
        with prepared(home, "xtdb", user.home):
            yield DemoStore(home, environment)
        return
    print(f"XTDB at {url}, namespace {namespace}.")
    token_file = own.token_file if user.xtdb.url is None else user.xtdb.token_file
    environment["FOREDECK_XTDB__URL"] = url
    if token_file is not None:
        environment["FOREDECK_XTDB__TOKEN_FILE"] = str(token_file)
    yield DemoStore(home, environment)


SAMPLE = Path(__file__).parent / "sample"
LATER = Path(__file__).parent / "later.js"
"""A Pi extension that saves the demo an hour's wait."""
LONG = "tests/recordings/long.jsonl"
"""In the checkout: 300 calls that a scripted model made in Pi."""
WINDOW_TOKENS = 24_000
"""The scripted model's context window: small, as the story is."""
START_TIMEOUT_S = 300.0

Json = dict[str, Any]


def main() -> int:
    """Run the demo; returns the exit status."""
    checkout = Path(__file__).resolve().parents[3]
    install = checkout_pi(checkout, VERSIONS[0])
    if install is None:
        print(f"demo: Pi {VERSIONS[0]} is not installed here. Run scripts/setup.", file=sys.stderr)
        return 1
    workspace = PiWorkspace(Path(tempfile.mkdtemp(prefix="foredeck-demo-")))
    copy_sample(workspace.repo)
    run = run_interactive if _wants_interaction() and _has_model(install) else run_scripted
    try:
        with demo_store(workspace.foredeck_home) as store:
            return run(install, workspace, checkout, store)
    except ForedeckError as error:
        return _fail(str(error), workspace)


def copy_sample(target: Path) -> None:
    """Copies the sample repository, as a git repository if possible."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SAMPLE, target, dirs_exist_ok=True, ignore=ignored)
    if shutil.which("git"):
        author = ["-c", "user.name=demo", "-c", "user.email=demo@localhost"]
        for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "Sample"]):
            subprocess.run(["git", *command], cwd=target, check=False, capture_output=True)


def _wants_interaction() -> bool:
    return (
        os.environ.get("FOREDECK_DEMO") != "scripted" and sys.stdin.isatty() and sys.stdout.isatty()
    )


def _has_model(install: PiInstall) -> bool:
    listed = subprocess.run(
        [*install.command, "--list-models"],
        env={**os.environ, "PI_OFFLINE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = listed.stdout.strip().split("\n")
    return listed.returncode == 0 and lines[0].startswith("provider") and len(lines) > 1


def run_interactive(
    install: PiInstall, workspace: PiWorkspace, checkout: Path, store: DemoStore
) -> int:
    print(f"Sample repository: {workspace.repo}")
    print(f"Try: {story()[0].prompt}")
    print("In Pi, /foredeck lists what the model sees. To see the demo without a model of yours,")
    print("run FOREDECK_DEMO=scripted scripts/demo.\n")
    environment = {**os.environ, "FOREDECK_HOME": str(store.home), **store.environment}
    command = [*install.command, "-e", str(checkout)]
    code = subprocess.run(command, cwd=workspace.repo, env=environment, check=False).returncode
    session = newest_session(store.config)
    rows = call_rows(store.config, session[0]) if session else []
    if session and rows:
        print(render(rows, answers_in(session[1]) if session[1] else []))
        _print_held(store)
        _print_end(store, checkout, session[0])
    return code


def run_scripted(
    install: PiInstall, workspace: PiWorkspace, checkout: Path, store: DemoStore
) -> int:
    turns = story()
    steps = [reply for turn in turns for reply in turn.replies]
    print(
        f"A scripted model with a window of {WINDOW_TOKENS:,} tokens works on a sample repository"
    )
    print(f"in {workspace.repo}\n")
    with ScriptedModel(steps, window=WINDOW_TOKENS) as model:
        _configure(workspace, model.url)
        try:
            _play(install, workspace, checkout, store, turns)
        except RpcError as error:
            return _fail(f"Pi: {error}", workspace)
    return _report(install, workspace, checkout, store, model)


def _configure(workspace: PiWorkspace, url: str) -> None:
    # Pi's own compaction is off: this is about what foredeck does with a full window.
    settings = {"compaction": {"enabled": False}}
    write_agent_dir(
        workspace.agent_dir, url, window=WINDOW_TOKENS, max_tokens=1000, settings=settings
    )


def _play(
    install: PiInstall, workspace: PiWorkspace, checkout: Path, store: DemoStore, turns: list[Turn]
) -> None:
    # The Python that runs this is new enough for the sample, `python3` on PATH may not be.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **PATIENT, **store.environment}
    with RpcPi(
        install,
        workspace,
        extensions=[checkout, LATER],
        environment=environment,
        timeout_s=START_TIMEOUT_S,
        on_event=narrate,
    ) as pi:
        # Pi would go on without the engine; the story is about what it does once it is there.
        pi.command("/foredeck setup")
        for command in plan():
            _command(pi, command)
        for turn in turns:
            if turn.later:
                print("  (an hour passes: the provider's cache expires)", flush=True)
                pi.command("/later")
            print(f"> {turn.prompt}", flush=True)
            pi.prompt(turn.prompt)
        _close_first_task(pi)
    workspace.leftovers()
    print()


def _close_first_task(pi: RpcPi) -> None:
    command = conclude(pi.notifications())
    for _ in range(3):
        earlier = len(pi.notifications())
        _command(pi, command)
        # A database that is busy with others may refuse it, and says so: it is typed again.
        if any("losed" in text for text in pi.notifications()[earlier:]):
            return


def _command(pi: RpcPi, command: str) -> None:
    print(f"> {command}"[:WIDTH], flush=True)
    pi.command(command)


def _play_second(
    install: PiInstall, workspace: PiWorkspace, checkout: Path, store: DemoStore
) -> str:
    """Lets a new session work there; returns what went wrong."""
    print("A new session of the same project:\n")
    with ScriptedModel(second_script(), window=WINDOW_TOKENS) as model:
        _configure(workspace, model.url)
        with RpcPi(
            install,
            workspace,
            extensions=[checkout],
            environment={**PATIENT, **store.environment},
            timeout_s=START_TIMEOUT_S,
            on_event=partial(narrate, lines=4),
        ) as pi:
            pi.command("/foredeck setup")
            print(f"> {PROMPT}", flush=True)
            pi.prompt(PROMPT)
    workspace.leftovers()
    print("\nWhat it was told beside that:\n")
    for line in told(model):
        print(f"    {line[: WIDTH - 4]}")
    print()
    return _fault(model)


def _fault(model: ScriptedModel) -> str:
    if model.violations:
        return f"the model refused a prompt: {model.violations[0].message}"
    if model.steps_left:
        statuses = " ".join(str(recorded.status) for recorded in model.requests)
        return f"the story did not come to its end, HTTP statuses {statuses}"
    return ""


def _report(
    install: PiInstall,
    workspace: PiWorkspace,
    checkout: Path,
    store: DemoStore,
    model: ScriptedModel,
) -> int:
    session = newest_session(store.config)
    if session is None or session[1] is None:
        return _fail("foredeck recorded nothing", workspace)
    rows = call_rows(store.config, session[0])
    print(render(rows, answers_in(session[1])))
    print("plain Pi, foredeck: tokens of the prompt")
    _print_held(store)
    if fault := _fault(model):
        return _fail(fault, workspace)
    if not _tests_pass(workspace):
        return _fail("the sample's tests do not pass", workspace)
    if fault := _play_second(install, workspace, checkout, store):
        return _fail(f"in the second session {fault}", workspace)
    _print_end(store, checkout, session[0])
    return 0


def _tests_pass(workspace: PiWorkspace) -> bool:
    command = [sys.executable, *TESTS.split()[1:]]
    return not subprocess.run(
        command, cwd=workspace.repo, check=False, capture_output=True
    ).returncode


def _print_held(store: DemoStore) -> None:
    comparison = store.settle()
    if comparison is not None:
        print(f"\n{comparison}")


def _print_end(store: DemoStore, checkout: Path, session: str) -> None:
    with closing(open_store(store.config, lazy=True)) as opened:
        figure = session_figure(opened, session, newest_call(opened, session))
    print(f"foredeck demo:\n{figure.sentence}.\n")
    variables = {"FOREDECK_HOME": str(store.home), **store.environment}
    print("Four things to try, after")
    for name, value in variables.items():
        print(f"  export {name}={value}")
    print(f"  export PATH={checkout / '.venv' / 'bin'}:$PATH")
    print()
    print(_commands(session[:13]))


def _commands(session: str) -> str:
    commands = {
        f"cost {session}": "what each call has cost, and why",
        f"show {session} --call 23": "what the model saw at a call",
        "cost --histories": "what foredeck would have saved you",
        f"cost {LONG}": "the same of a recording",
    }
    width = max(map(len, commands))
    return "\n".join(f"  foredeck {each:<{width}}  {what}" for each, what in commands.items())


def _fail(reason: str, workspace: PiWorkspace) -> int:
    log = workspace.root / "rpc.stderr"
    if log.exists():
        sys.stderr.write(log.read_text(encoding="utf-8", errors="replace")[-4000:])
    print(f"foredeck demo: failed: {reason} (kept: {workspace.root})", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
