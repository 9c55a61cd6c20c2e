"""Runs of the real Pi in print mode, and the twin's record of its model."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foredeck_bench.scripted.pi_process import PiInstall, PiWorkspace, pi_arguments
from foredeck_bench.twin.billing import ModelRecord
from foredeck_bench.twin.script import Api, Json


def twin_record(api: Api, record: Json) -> ModelRecord:
    """The twin's record of such a model."""
    bound = api == "anthropic-messages" or "compat" in record
    return replace(ModelRecord.of_pi(api, record), bound=bound)


@dataclass(frozen=True, slots=True)
class PrintRun:
    """What became of a run in print mode."""

    stdout: str
    stderr: str
    code: int


def run_print(
    install: PiInstall,
    workspace: PiWorkspace,
    *prompts: str,
    extensions: Sequence[Path] = (),
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> PrintRun:
    """Runs `pi -p` with these prompts. Raises TimeoutError, with the output so far."""
    command = [*install.command, *pi_arguments(extensions, arguments), "-p", *prompts]
    process = subprocess.Popen(
        command,
        cwd=workspace.repo,
        env=workspace.environment(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        workspace.end_leftovers()
        stdout, stderr = process.communicate()
        raise TimeoutError(
            f"pi -p did not end in {timeout_s:g} s\nstdout: {stdout}\nstderr: {stderr}"
        ) from None
    return PrintRun(stdout, stderr, process.returncode)
