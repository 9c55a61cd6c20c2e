"""`python -m foredeck_bench.recordings [NAME...]`: records the sessions of tests/recordings
anew."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foredeck_bench.recordings.sessions import RECORDINGS, Recorder
from foredeck_bench.scripted.pi_process import VERSIONS, PiWorkspace, checkout_pi

START_MS = 1_790_000_000_000
STEP_MS = 10_000
"""Between an entry and the next."""

_IDS = re.compile(r"\b(toolu|msg|call|thread|resp|rs|req)_[0-9A-Za-z_-]+")
_TIMED = (
    (re.compile(r"\bin \d+\.\d+s\b"), "in 0.01s"),
    (re.compile(r"[Ww]all time:? \d+(?:\.\d+)? ?s(?:econds)?"), "Wall time 0.1 seconds"),
    (re.compile(r'"durationMs":\d+'), '"durationMs":5'),
    (re.compile(r"\d{4}-\d\d-\d\d(?=\\n|<| ?\()"), "2026-09-21"),
    (re.compile(r"/tmp/pi-[\w-]+"), "/tmp/pi-output"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z_"), "2026-09-21T13-33-20-000Z_"),
)


def tidied(text: str, number: int, places: Mapping[str, str]) -> str:
    """A session file's text without this machine; `places` renames folders and sessions."""
    # The longest first: one may lie in another.
    for path in sorted(places, key=len, reverse=True):
        text = text.replace(path, places[path])
        text = text.replace(_slug(path), _slug(places[path]))
    for pattern, plain in _TIMED:
        text = pattern.sub(plain, text)
    replacements: dict[str, str] = {}
    text = _IDS.sub(
        lambda m: replacements.setdefault(m[0], f"{m[1]}_{len(replacements) + 1:03d}"), text
    )
    header, *entries = [json.loads(line) for line in text.split("\n") if line]
    names = {header["id"]: session_name(number)}
    names |= {entry["id"]: f"{n:08x}" for n, entry in enumerate(entries, 1)}
    lines = [_timed(header, START_MS)]
    lines += [_timed(entry, START_MS + n * STEP_MS) for n, entry in enumerate(entries, 1)]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return re.sub("|".join(map(re.escape, names)), lambda m: names[m[0]], text)


def session_name(number: int) -> str:
    """The id of a recorded session."""
    return f"0199f000-0000-7000-8000-{number:012d}"


def _slug(path: str) -> str:
    return path.strip("/").replace("/", "-")


def _timed(entry: dict[str, Any], time_ms: int) -> dict[str, Any]:
    timed = {**entry, "timestamp": _iso(time_ms)}
    for name in ("message", "systemMessage"):
        if isinstance(entry.get(name), dict):
            timed[name] = {**entry[name], "timestamp": time_ms}
    return timed


def _iso(time_ms: int) -> str:
    stamp = datetime.fromtimestamp(time_ms / 1000, UTC)
    return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def checked(text: str, machine: list[Path]) -> str:
    """The text, without paths of this machine. Raises ValueError."""
    leaks = [str(path) for path in machine if str(path) in text]
    if leaks:
        raise ValueError(f"still in the recording: {', '.join(leaks)}")
    return text


CHECKOUT = Path(__file__).resolve().parents[3]
FOLDER = CHECKOUT / "tests" / "recordings"
MOST = 5
"""Session files of one recording."""


def main(names: Sequence[str]) -> int:
    install = checkout_pi(CHECKOUT, VERSIONS[0])
    if install is None:
        print(f"Pi {VERSIONS[0]} is not installed: run scripts/setup.", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    for number, (name, record) in enumerate(RECORDINGS.items(), 1):
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="foredeck-recording-") as scratch:
            workspace = PiWorkspace(Path(scratch).resolve())
            recorder = Recorder(install, workspace)
            try:
                record(recorder)
            finally:
                recorder.close()
            texts = recorder.files()
            pi = Path(install.command[1]).parents[2]
            places = {
                str(workspace.repo): "/repo",
                str(workspace.root): "/scratch",
                str(pi): "/pi",
                str(CHECKOUT): "/foredeck",
                sys.executable: "python3",
            }
            ids = [json.loads(text.partition("\n")[0])["id"] for text in texts]
            places |= {id: session_name(number * MOST + part) for part, id in enumerate(ids)}
        for part, text in enumerate(texts):
            plain = tidied(text, number * MOST + part, places)
            path = FOLDER / f"{name}{f'-{part + 1}' if len(texts) > 1 else ''}.jsonl"
            path.write_text(checked(plain, [CHECKOUT, workspace.root]), encoding="utf-8")
            print(f"{path.name}: {len(plain):,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
