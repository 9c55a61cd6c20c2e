"""Memory and processor time of another process, where the system says."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path


def resident_mb(pid: int) -> float | None:
    """Resident memory in megabytes; None where the system does not say."""
    return _status_mb(pid, "VmRSS:") or _resident_by_ps(pid)


def peak_mb_of(pid: int) -> float | None:
    """The most memory that was ever resident, in megabytes; None where the system does not say."""
    return _status_mb(pid, "VmHWM:")


def busy_seconds(pid: int, seconds: float) -> float | None:
    """Processor time that a process uses in the next `seconds`; None where the system does not
    say."""
    before = used_seconds(pid)
    if before is None:
        return None
    time.sleep(seconds)
    return (used_seconds(pid) or before) - before


def used_seconds(pid: int) -> float | None:
    """Processor time that a process has used; None where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status_mb(pid: int, name: str) -> float | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), None)


def _resident_by_ps(pid: int) -> float | None:
    command = ["ps", "-o", "rss=", "-p", str(pid)]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return int(told) / 1024
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
