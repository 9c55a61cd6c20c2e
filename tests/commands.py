"""Commands of foredeck's, run in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foredeck.cli.main import main


class Foredeck:
    """Runs a command, and gives what it prints: on stderr if it fails.

    A path before its words is the state folder; `out` and `err` are what it has printed. With
    `code` None it may end as it likes, and all that it prints is given.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *words: str | Path, code: int | None = 0) -> str:
        home = ["--home", str(words[0])] if words and isinstance(words[0], Path) else []
        self._capsys.readouterr()
        ended = main([*map(str, words[bool(home) :]), *home])
        self.out, self.err = self._capsys.readouterr()
        if code is None:
            return self.out + self.err
        assert ended == code, self.err
        return self.err if code else self.out

    def refused(self, *words: str | Path, code: int = 4) -> str:
        """What a command says that prints nothing else."""
        said = self(*words, code=code)
        assert self.out == ""
        return said if code else self.err

    def json(self, *words: str | Path, code: int | None = 0) -> Any:
        """The value that a command prints, whether it fails or not."""
        self(*words, "--json", code=code)
        return json.loads(self.out)
