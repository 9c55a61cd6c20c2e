"""`foredeck reindex`: the derived layers, made again from the store."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from foredeck.cli.common import add_config_flags, add_json_flag, resolve_config
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.cli.stored import opened_store, warn_of_others
from foredeck.derived.registry import LAYERS
from foredeck.lookup.texts import counted, short_count


def _run(args: Namespace) -> int:
    from foredeck.derived.follower import Follower
    from foredeck.derived.registry import load_layer

    home = resolve_config(args).config.home
    made: list[dict[str, Any]] = []
    with opened_store(args) as store:
        with Progress("fetching, page") as progress:
            if not store.fetch_all(progress.advance):
                warn_of_others()
        for name in [args.layer] if args.layer else LAYERS:
            with (
                Follower(store, load_layer(name), home) as follower,
                Progress(f"{name}: batch") as progress,
            ):
                looked_at = follower.make_again(progress.advance)
                made.append(
                    {
                        "layer": name,
                        "versions": looked_at,
                        "file": str(follower.path),
                        "bytes": follower.path.stat().st_size,
                    }
                )
    if args.json:
        print_json({"layers": made})
        return 0
    for layer in made:
        versions = counted(layer["versions"], "version")
        size = f"{short_count(layer['bytes'])}B"
        print(f"{layer['layer']}: {versions} looked at; {layer['file']} ({size})")
    return 0


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "layer",
        metavar="LAYER",
        nargs="?",
        choices=LAYERS,
        help=f"which one (default: all): {', '.join(LAYERS)}",
    )
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Make what is derived from the store again: the index of `foredeck search`. Searching\n"
        "keeps it up to date by itself, and makes it again where that is needed (after an import,\n"
        "after `foredeck forget`, by a newer foredeck); this is for an index that is damaged or\n"
        "doubted. Nothing but time is lost with the files in layers/ of the state folder."
    ),
    example="foredeck reindex search",
    configure=_configure,
    run=_run,
)
