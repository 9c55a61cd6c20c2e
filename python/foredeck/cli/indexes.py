"""Rebuilds and shrinks the indexes made from a store."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing
from typing import Any

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer
from foredeck.cli.stored import fetch_others, opened_store
from foredeck.derived import LAYERS, load_layer
from foredeck.derived.follower import Follower
from foredeck.derived.layer import compact, layer_file
from foredeck.model.figures import counted, short_bytes
from foredeck.store.kind import store_file
from foredeck.store.sqlite.adapter import open_sqlite


def rebuild(args: Namespace) -> int:
    """`foredeck doctor --rebuild`."""
    home = resolve_config(args).config.home
    rows: list[dict[str, Any]] = []
    with opened_store(args) as store:
        with Progress("fetching, page") as progress:
            fetch_others(store, progress)
        for name in LAYERS if args.rebuild == "all" else [args.rebuild]:
            with (
                Follower(store, load_layer(name), home) as follower,
                Progress(f"{name}: batch") as progress,
            ):
                looked_at = follower.make_again(progress.advance)
                rows.append(
                    {
                        "layer": name,
                        "versions": looked_at,
                        "file": str(follower.path),
                        "bytes": follower.path.stat().st_size,
                    }
                )
    lines = [
        f"{layer['layer']}: {counted(layer['versions'], 'version')} looked at; "
        f"{layer['file']} ({short_bytes(layer['bytes'])})"
        for layer in rows
    ]
    return answer(args, {"layers": rows}, lines)


def vacuum(args: Namespace) -> int:
    """`foredeck doctor --vacuum`."""
    config = resolve_config(args).config
    with opened_store(args):  # raises where there is no store, which is not made for this
        pass
    file = store_file(config)
    with closing(open_sqlite(file)) as store:
        layers = [layer_file(config.home, name, store.lineage().id) for name in LAYERS]
        sizes = [(file, *store.vacuum())]
    sizes += [(path, *compact(path)) for path in layers if path.exists()]
    vacuumed = [{"file": str(f), "bytes_before": b, "bytes_after": a} for f, b, a in sizes]
    lines = [f"{f}: {short_bytes(b)}, now {short_bytes(a)}." for f, b, a in sizes]
    return answer(args, {**vacuumed[0], "layers": vacuumed[1:]}, lines)
