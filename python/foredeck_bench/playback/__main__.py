"""Play recorded sessions through the real Pi on the providers' twin, and hold foredeck's figures to
the twin's bill.

    python -m foredeck_bench.playback --as MODEL PATH...

Each session is played twice, by plain Pi and with foredeck: recorded answers, recorded times, tools
that return what they returned. What plain Pi has recorded of that is then replayed.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foredeck.cli.output import table
from foredeck_agents.histories.recordings import find_recordings, load_recording
from foredeck_bench.playback.play import CHECKOUT, PlayResult, pi_record, play
from foredeck_bench.playback.recorded import RecordedPlay
from foredeck_bench.scripted.pi_process import VERSIONS, PiInstall, PiWorkspace, checkout_pi
from foredeck_bench.twin.report import TwinReport
from foredeck_lab.replay.options import ReplayOptions, replayed_model
from foredeck_lab.replay_command import replay

_HEAD = ("session", "calls", "side", "twin's bill", "cost", "replay", "all in all", "Pi's own")
_NOTE = """
twin's bill: of the prompts, in dollars; cost: `foredeck cost`, in per cent of that; replay:
`foredeck replay --as`; all in all: the bill with the answers; Pi's own: what its status line says,
in per cent of that."""


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m foredeck_bench.playback", description=__doc__)
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path)
    parser.add_argument("--as", dest="model", default="claude-opus-5-5", help="who answers")
    parser.add_argument("--window", type=int, default=200_000, help="of that model, in tokens")
    parser.add_argument("--calls", type=int, help="play so many of each session")
    parser.add_argument(
        "--report", action="store_true", help="print the twin's report of each, rebases and sizes"
    )
    options = parser.parse_args(arguments)
    install = checkout_pi(CHECKOUT, VERSIONS[0])
    if install is None:
        print(f"Pi {VERSIONS[0]} is not installed: run scripts/setup.", file=sys.stderr)
        return 1
    rows: list[tuple[str, ...]] = [_HEAD]
    for path in find_recordings(options.paths):
        with tempfile.TemporaryDirectory(prefix="foredeck-playback-") as name:
            recorded = RecordedPlay.of(load_recording(path), options.calls)
            plain, ours = play_both(recorded, install, Path(name), options.model, options.window)
            figures = replayed(plain.session_file, options.model, options.window)
            rows += rows_of(path.stem, plain, ours, figures)
            if options.report:
                print(f"{path.stem}\nplain Pi: {TwinReport.of(plain.model).text()}")
                print(f"with foredeck: {TwinReport.of(ours.model).text()}")
                print("\n".join(ours.curve()), end="\n\n", flush=True)
    print(table(rows))
    print(_NOTE)
    return 0


def play_both(
    recorded: RecordedPlay, install: PiInstall, folder: Path, model: str, window: int
) -> tuple[PlayResult, PlayResult]:
    """A session played by plain Pi, and with foredeck."""
    api, record = pi_record(model)
    record = {**record, "contextWindow": window}

    def played(name: str, *, foredeck: bool) -> PlayResult:
        workspace = PiWorkspace(folder / name)
        try:
            return play(recorded, install, workspace, api=api, record=record, foredeck=foredeck)
        finally:
            workspace.end_leftovers()

    return played("plain", foredeck=False), played("foredeck", foredeck=True)


def replayed(session_file: Path, model: str, window: int) -> dict[str, Any]:
    record = replayed_model(model)
    options = ReplayOptions(window=window, cache=record.cache, ttl_s=record.ttl_s, as_model=record)
    (costs,) = replay([session_file], options)["costs"]
    return dict(costs)


def rows_of(
    name: str, plain: PlayResult, ours: PlayResult, figures: dict[str, Any]
) -> list[tuple[str, ...]]:
    assert ours.figure is not None
    sides = (
        ("plain Pi", plain, ours.figure.plain, figures["plain_pi"]),
        ("foredeck", ours, ours.figure.ours, figures["foredeck"]),
    )
    return [
        (
            name[:24],
            str(len(side.calls)),
            label,
            f"{side.dollars:.4f}",
            _share(cost, side.dollars),
            _share(replay_cost, side.dollars),
            f"{side.total:.4f}",
            _share(side.host, side.total),
        )
        for label, side, cost, replay_cost in sides
    ]


def _share(value: float, of: float) -> str:
    return f"{100 * value / of:.1f}%" if of else "-"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
