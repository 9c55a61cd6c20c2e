"""`python -m foredeck_bench.recordings [NAME...]`: record the sessions of tests/recordings anew."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from foredeck_bench.recordings.sessions import RECORDINGS, Recorder
from foredeck_bench.recordings.tidying import checked, session_name, tidied
from foredeck_bench.scripted.pi_process import VERSIONS, PiWorkspace, checkout_pi

CHECKOUT = Path(__file__).resolve().parents[3]
FOLDER = CHECKOUT / "tests" / "recordings"
MOST = 5
"""Session files of one recording."""


def main(names: Sequence[str]) -> int:
    """Record these sessions, or all; the exit status."""
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
