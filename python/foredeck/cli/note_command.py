"""`foredeck note`: a new note from a template, for people."""

from __future__ import annotations

import json
import os
import re
from argparse import ArgumentParser, Namespace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.cli.common import add_config_flags, add_json_flag, resolve_config
from foredeck.cli.output import print_json
from foredeck.cli.registry import Command
from foredeck.errors import ForedeckError

if TYPE_CHECKING:
    from foredeck.config import Config

_UNFIT = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|#^\[\]]+')
MAX_NAME = 120

TEMPLATE = """\
---
title: {title}
kind: note
created: {created}
tags: {tags}
---

# {heading}

"""


class NoteExists(ForedeckError):
    """There is a file of this name already."""


class NotesElsewhere(ForedeckError):
    """The project's folder of notes is a link that leads out of the project."""


class NoName(ForedeckError):
    """The title has nothing that a file could be called."""

    exit_code = 2


def _folder_of_notes(config: Config) -> Path:
    """The first of `notes.folders`, at the top of the repository that this folder lies in."""
    from foredeck.sources.filesystem import is_within
    from foredeck.sources.opening import open_filesystems
    from foredeck.sources.projects import checkout_of, is_outside

    here = str(Path.cwd())
    top, name = (
        Path(checkout_of(here, open_filesystems(config, here)) or here),
        config.notes.folders[0],
    )
    folder = top / name
    real = os.path.realpath(folder)
    if not is_outside(name) and not is_within(real, os.path.realpath(top)):
        raise NotesElsewhere(f"{folder} leads to {real}, out of the project: --folder takes it.")
    return folder


def _run(args: Namespace) -> int:
    folder = Path(args.folder) if args.folder else _folder_of_notes(resolve_config(args).config)
    file = folder / f"{_file_name(args.title)}.md"
    tags = json.dumps([tag.lstrip("#") for tag in args.tag], ensure_ascii=False)
    text = TEMPLATE.format(
        title=json.dumps(args.title, ensure_ascii=False),
        created=date.today().isoformat(),
        tags=tags,
        heading=" ".join(args.title.split()),
    )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError:
        raise NoteExists(f"{file} is there already: nothing was written.") from None
    if args.json:
        print_json({"path": str(file.absolute()), "title": args.title})
    else:
        print(file)
    return 0


def _file_name(title: str) -> str:
    """The title without what file systems or links cannot have."""
    name = " ".join(_UNFIT.sub(" ", title).split()).lstrip(".")[:MAX_NAME].strip()
    if not name:
        raise NoName(f"{title!r} has no letter or digit that a file could be called by.")
    return name


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("title", metavar="TITLE", help="the title, and the name of the file")
    parser.add_argument(
        "--folder", metavar="DIR", help="where to put it (default: the first of `notes.folders`)"
    )
    parser.add_argument(
        "--tag", metavar="T", action="append", default=[], help="a tag; may be repeated"
    )
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Make a note from a template, with title, kind, date and tags in its frontmatter, and\n"
        "print its path. Notes are plain Markdown files: any other way to write one is as good."
    ),
    example='foredeck note "Ebb and flow" --tag sea',
    configure=_configure,
    run=_run,
)
