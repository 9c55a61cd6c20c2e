"""A command on a terminal: what stands on the screen, and what a person types."""

from __future__ import annotations

import os
import pty
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

FOREDECK = str(Path(sys.executable).with_name("foredeck"))


class Screen:
    """A command on a terminal of 24 rows."""

    def __init__(self, home: Path, command: list[str], environment: Mapping[str, str]) -> None:
        usual = {"TERM": "xterm", "FOREDECK_HOME": str(home), "LINES": "24", "COLUMNS": "80"}
        without = {k: v for k, v in os.environ.items() if k not in ("PAGER", "LESS", "NO_COLOR")}
        self.text = ""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            # A background job of a shell that is not interactive ignores it.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execve(FOREDECK, [FOREDECK, *command], {**without, **usual, **environment})

    def read_until(self, text: str | None = None) -> str:
        """What is shown up to a text, or to the end."""
        while text is None or text not in self.text:
            try:
                part = os.read(self._terminal, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            self.text += part.decode()
        return self.text

    def type(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def end(self) -> tuple[str, int]:
        """All that was shown, and the exit code."""
        text = self.read_until()
        os.close(self._terminal)
        return text, os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
