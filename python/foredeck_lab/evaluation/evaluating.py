"""An evaluation's runs: each task by plain Pi and with foredeck, round after round."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck.accounting.figure import cost_of, stored_questions
from foredeck.config import Config
from foredeck.config.keys import CONSTANTS, environment_name
from foredeck.errors import ForedeckError
from foredeck.model.calls import CallRecord
from foredeck.model.documents import SessionDocument
from foredeck.store.place import open_store, store_place
from foredeck_lab.evaluation.tasks import SIDES, EvalTask, ResultsFile, RunKey, RunResult
from foredeck_lab.processes import end_marked

CHECK_S = 120.0
"""Longest check or setup."""


@dataclass(frozen=True, slots=True)
class EvalPlan:
    """What is to be evaluated, and with what."""

    tasks: Sequence[EvalTask]
    model: str
    """As Pi takes it: `provider/id`, a pattern, `:LEVEL`."""
    rounds: int
    pi: Sequence[str]
    """The command that starts Pi."""
    extension: Path
    """foredeck's extension, as `pi -e` takes it."""
    agent_dir: Path
    """Pi's folder with models and keys."""
    settings: tuple[str, ...] = ()
    """`KEY=VALUE` of foredeck's configuration."""
    keeps: bool = False
    """Whether the folders of runs stay."""
    budget: float | None = None
    """Dollars after which no run begins."""

    def runs(self) -> Iterator[tuple[EvalTask, RunKey]]:
        """All runs in their order."""
        # Who begins changes from task to task and round to round: what the provider's cache holds
        # of one side must not always help the other.
        for round in range(1, self.rounds + 1):
            for at, task in enumerate(self.tasks):
                digest = task.digest
                for side in SIDES if (round + at) % 2 else reversed(SIDES):
                    key = (task.name, digest, self.model, self.settings, round, side)
                    yield task, RunKey(*key)


def evaluate(plan: EvalPlan, results: ResultsFile) -> Iterator[tuple[RunResult, bool]]:
    """Makes missing runs; yields all results, each with whether it was there before. Raises
    `ForedeckError`, keeping earlier ones."""
    spent = 0.0
    for task, key in plan.runs():
        if (earlier := results.get(key)) is not None:
            yield earlier, True
        elif plan.budget is None or spent < plan.budget:
            result = _run(plan, task, key)
            results.add(result)
            spent += result.cost
            yield result, False


def _run(plan: EvalPlan, task: EvalTask, key: RunKey) -> RunResult:
    # Resolved: the agent and the check must mean the same folder by its name.
    root = Path(tempfile.mkdtemp(prefix=f"foredeck-eval-{key.side}-")).resolve()
    try:
        return _run_in(ScratchRun(root / "run"), plan, task, key)
    finally:
        if not plan.keeps:
            shutil.rmtree(root, ignore_errors=True)


def _run_in(scratch: ScratchRun, plan: EvalPlan, task: EvalTask, key: RunKey) -> RunResult:
    scratch.prepare(task, plan.agent_dir)
    if task.setup:
        setup_result = _shell(task.setup, scratch)
        if setup_result.code != 0:
            raise ForedeckError(f"the task {task.name} cannot be set up: {setup_result.said}")
    ran = _ask(scratch, plan, task, key.side)
    spent, share = spent_in(scratch.agent_dir), own_share(scratch.foredeck_home)
    _check_it_counts(ran, spent, share, key)
    scratch.lay_check(task)
    checked = _shell(task.check, scratch)
    passed = "timeout" if ran.code is None else "failed"
    return RunResult(
        key,
        "passed" if checked.code == 0 else passed,
        spent.calls,
        spent.fresh,
        spent.read,
        spent.written,
        spent.output,
        round(spent.cost + share.asked_cost, 6),
        share.managed,
        share.asked,
        round(ran.seconds, 1),
        checked.said,
    )


def _ask(scratch: ScratchRun, plan: EvalPlan, task: EvalTask, side: str) -> Ran:
    extra, loaded = {}, []
    if side == "foredeck":
        loaded = ["-e", str(plan.extension)]
        pairs = (setting.partition("=") for setting in plan.settings)
        extra = {environment_name(name): value for name, _, value in pairs}
        # Benches change them, so as not to depend on how busy the machine is.
        extra[CONSTANTS] = "1"
        # This one has foredeck; the scratch HOME has none.
        extra["FOREDECK_PYTHON"] = sys.executable
    command = [*plan.pi, *loaded, "--model", plan.model, "-p", "--", *task.prompts]
    return run_command(command, scratch.work, scratch.environment(extra), task.timeout_s)


def _check_it_counts(ran: Ran, spent: RunFigures, share: OwnShare, key: RunKey) -> None:
    """Raises `ForedeckError` if the run says nothing of the task."""
    if spent.error and ran.code is not None:
        raise ForedeckError(f"{key.model} did not answer ({key.task}): {spent.error}")
    if not spent.calls:
        why = ran.said or f"Pi ended with {ran.code} and said nothing"
        raise ForedeckError(f"Pi could not ask {key.model} ({key.task}): {why}")
    if key.side == "foredeck" and not share.managed:
        raise ForedeckError(
            f"foredeck made none of the {spent.calls} prompts of {key.task}: {ran.said or 'Pi'} "
            "(`foredeck doctor` checks what it needs)"
        )


def _shell(line: str, scratch: ScratchRun) -> Ran:
    return run_command(("sh", "-c", line), scratch.work, scratch.environment({}), CHECK_S)


@dataclass(slots=True)
class RunFigures:
    """Sums over a run's calls, by the provider's counts; `cost` in dollars."""

    calls: int = 0
    fresh: int = 0
    """Input that no cache held or took."""
    read: int = 0
    written: int = 0
    output: int = 0
    cost: float = 0.0
    error: str = ""
    """Why the last call failed."""

    def add(self, answer: dict[str, Any]) -> None:
        """One answer of the model."""
        self.error = ""
        if answer.get("stopReason") in ("error", "aborted"):
            self.error = str(answer.get("errorMessage") or answer["stopReason"])
        usage = answer.get("usage") or {}
        self.calls += not self.error
        self.fresh += int(usage.get("input") or 0)
        self.read += int(usage.get("cacheRead") or 0)
        self.written += int(usage.get("cacheWrite") or 0)
        self.output += int(usage.get("output") or 0)
        self.cost += float((usage.get("cost") or {}).get("total") or 0)


@dataclass(frozen=True, slots=True)
class OwnShare:
    managed: int = 0
    asked: int = 0
    asked_cost: float = 0.0


def spent_in(agent_dir: Path) -> RunFigures:
    figures = RunFigures()
    for answer in _answers(sorted((agent_dir / "sessions").rglob("*.jsonl"))):
        figures.add(answer)
    return figures


def _answers(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        # By line feeds alone: a text may hold what else Python takes for the end of a line.
        for line in file.read_text(encoding="utf-8").split("\n"):
            entry = json.loads(line) if line else {}
            message = entry.get("message") or {}
            if entry.get("type") == "message" and message.get("role") == "assistant":
                yield message


def own_share(home: Path) -> OwnShare:
    config = Config(home=home)
    if not store_place(config).exists():
        return OwnShare()
    with closing(open_store(config, lazy=True)) as store:
        records = [CallRecord(head.fields) for head in store.query("call")]
        requests = [
            question
            for head in store.query("session")
            for question in stored_questions(store, head.view(SessionDocument).session_id)
        ]
    managed = sum(not record.decision.is_host for record in records)
    return OwnShare(managed, len(requests), sum(map(cost_of, requests)))


# Running a command


_GRACE_S = 3.0
"""For Pi to end what it started."""
_SETTLE_S = 10.0
"""For processes of a run to end after it."""
_SAID_CHARS = 600


@dataclass(frozen=True, slots=True)
class Ran:
    code: int | None
    said: str
    seconds: float


def run_command(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], timeout_s: float
) -> Ran:
    """Runs a command to its end or time-out, leaving nothing running."""
    # Through a file: a pipe would stay open as long as anything that the agent has put into the
    # background.
    printed = folder.parent / "printed"
    began = time.monotonic()
    with printed.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a group of its own, which can be ended as a whole
        )
        try:
            code: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            seconds = time.monotonic() - began
            _end(process)
            end_marked(MARK, environment[MARK], _GRACE_S if process.returncode else _SETTLE_S)
    said = printed.read_text(encoding="utf-8", errors="replace").strip()
    return Ran(code, said[-_SAID_CHARS:], seconds)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    _signal(process, signal.SIGTERM)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.terminate()


# Where a run works


MARK = "EVAL_RUN_OF_FOREDECK"
"""Marks processes of a run; names with FOREDECK_ are configuration."""
_OF_THE_USER = ("FOREDECK_", "PI_", "XDG_")
_LENT = ("auth.json", "models.json")
_SETTINGS = {"enableInstallTelemetry": False, "quietStartup": True, "cacheWarming": "off"}


@dataclass(frozen=True, slots=True)
class ScratchRun:
    """One run's folders, thrown away after.

    Of the user's only `auth.json` and `models.json` are lent.
    """

    root: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def work(self) -> Path:
        """Where the agent works."""
        return self.root / "work"

    @property
    def agent_dir(self) -> Path:
        """Pi's configuration and sessions."""
        return self.root / "agent"

    @property
    def foredeck_home(self) -> Path:
        """foredeck's state."""
        return self.root / "foredeck"

    def prepare(self, task: EvalTask, agent_dir: Path) -> None:
        for folder in (self.root / "home", self.agent_dir):
            folder.mkdir(parents=True)
        shutil.copytree(task.folder / "files", self.work, ignore=_caches)
        (self.agent_dir / "settings.json").write_text(json.dumps(_SETTINGS))
        for name in _LENT:
            if (agent_dir / name).exists():
                _lend((agent_dir / name).resolve(), self.agent_dir / name)

    def lay_check(self, task: EvalTask) -> None:
        """Lays what the agent never saw over its work."""
        if (task.folder / "check").is_dir():
            shutil.copytree(task.folder / "check", self.work, ignore=_caches, dirs_exist_ok=True)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """The user's environment and keys, without settings of Pi and foredeck, and another
        HOME."""
        variables = {k: v for k, v in os.environ.items() if not k.startswith(_OF_THE_USER)}
        home = str(self.root / "home")
        return {
            **variables,
            **{"HOME": home, "USERPROFILE": home, MARK: self.mark},
            **{
                "PI_CODING_AGENT_DIR": str(self.agent_dir),
                "FOREDECK_HOME": str(self.foredeck_home),
            },
            **{"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"},
            **extra,
        }


def users_agent_dir() -> Path:
    """Pi's folder of this user."""
    agent_dir = os.environ.get("PI_CODING_AGENT_DIR")
    return Path(agent_dir).expanduser() if agent_dir else Path.home() / ".pi" / "agent"


def _lend(source: Path, target: Path) -> None:
    try:
        # A link, so that a login that is renewed meanwhile is renewed for the user, too.
        target.symlink_to(source)
    except OSError:  # Windows, without the right to make links
        shutil.copy2(source, target)


def _caches(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]
