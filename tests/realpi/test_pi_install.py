"""Installed as users install it: from a checkout, and from the packed tarball."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from foredeck_bench.release import extract
from foredeck_bench.scripted.pi_process import PiInstall
from foredeck_bench.twin.script import call
from foredeck_bench.twin.server import ScriptedModel
from harness import Pi, both_versions
from observed import calls_of, last_result, notified, stored
from processes import run_program

INSTALLER_VARIABLES = ("PIP_", "UV_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""What a user sets to reach a package registry: the installers must see it."""


def pi_command(
    pi: Pi, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one of Pi's own commands, such as `pi install`."""
    return run_program(
        *pi.install.command,
        *arguments,
        cwd=pi.repo,
        env=pi.workspace.environment(environment),
        timeout=120,
    )


def serve(pi: Pi) -> ScriptedModel:
    """A model that runs one command with an output that is long enough for a handle."""
    return pi.serve([call("bash", command="seq 300"), "done"])


@both_versions
def test_a_checkout_is_installed_and_removed_again(pi: Pi, checkout: Path) -> None:
    serve(pi)
    installed = pi_command(pi, "install", str(checkout))
    assert installed.returncode == 0, installed.stderr
    (package,) = json.loads((pi.workspace.agent_dir / "settings.json").read_text())["packages"]
    assert (pi.workspace.agent_dir / package).resolve() == checkout
    with_foredeck(pi)
    removed = pi_command(pi, "remove", str(checkout))
    assert removed.returncode == 0, removed.stderr
    settings = pi.workspace.agent_dir / "settings.json"
    kept = settings.read_text()
    model = serve(pi)
    settings.write_text(kept)
    assert pi.print("go").code == 0
    assert not last_result(model.requests[-1]).startswith("@")
    assert "activate" not in model.requests[-1].request.tools


def test_a_git_url_is_installed(pi: Pi, checkout: Path, tmp_path: Path) -> None:
    """A bare repository on disk stands for the one that the address names."""
    bare = tmp_path / "foredeck.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", checkout, bare], check=True)
    environment = {
        **installer_environment(),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{bare.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/example/foredeck",
    }
    installed = pi_command(
        pi, "install", "git:github.com/example/foredeck", environment=environment
    )
    assert installed.returncode == 0, installed.stderr
    clone = pi.workspace.agent_dir / "git" / "github.com" / "example" / "foredeck"
    assert (clone / "extensions" / "foredeck" / "index.ts").is_file()
    assert "git:github.com/example/foredeck" in pi_command(pi, "list").stdout


def with_foredeck(pi: Pi) -> None:
    """Plain `pi -p` must have foredeck in it now."""
    settings = pi.workspace.agent_dir / "settings.json"
    kept = settings.read_text()
    model = serve(pi)
    settings.write_text(kept)
    ended = pi.print("go", environment=installer_environment())
    assert (ended.code, ended.stderr, ended.stdout.strip()) == (0, "", "done")
    assert last_result(model.requests[-1]).startswith("@")
    with stored(pi) as store:
        assert len(calls_of(store)) == 2


def installer_environment() -> dict[str, str]:
    """The variables of this process that lead to a package registry."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper().startswith(INSTALLER_VARIABLES)
    }


@pytest.fixture
def tarball(checkout: Path, tmp_path: Path) -> Path:
    """What `npm pack` makes of this checkout."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    packed = run_program(
        "npm", "pack", "--silent", "--pack-destination", str(tmp_path), cwd=checkout, timeout=120
    )
    assert packed.returncode == 0, packed.stderr
    return tmp_path / packed.stdout.strip().splitlines()[-1]


def test_the_tarball_holds_what_runs_and_nothing_else(tarball: Path) -> None:
    with tarfile.open(tarball) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
    for needed in (
        "package.json",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "extensions/foredeck/index.ts",
        "requirements.lock",
        "ts-shim/index.ts",
        "ts-shim/tools.json",
        "python/foredeck/engine/engine.py",
    ):
        assert needed in names
    folders = {name.split("/")[0] for name in names if "/" in name}
    assert folders <= {"extensions", "ts-shim", "python", "docs", "xtdb"}
    assert not [name for name in names if "test" in name.split("/") or name.endswith(".pyc")]
    assert not [name for name in names if name.startswith("python/foredeck_bench")]


@pytest.mark.long
def test_the_published_package_from_first_use_to_update_and_removal(
    pi: Pi, tarball: Path, tmp_path: Path
) -> None:
    """In an empty HOME: Pi works at once and says so; the engine is built outside the package."""
    (pi.repo / "a.txt").write_text("".join(f"line {n} of a file\n" for n in range(60)))
    tarballs = {json.loads(manifest_in(tarball))["version"]: tarball}
    with registry(tarballs) as address:
        environment = {
            **installer_environment(),
            **{"npm_config_registry": address, "PI_OFFLINE": "0"},
        }

        def manage(*words: str) -> str:
            done = pi_command(pi, *words, environment=environment)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        serve(pi)
        manage("install", "npm:pi-foredeck")
        assert "npm:pi-foredeck" in manage("list")
        settings = (pi.workspace.agent_dir / "settings.json").read_text()
        pi.serve([call("bash", command="seq 300"), "done"])
        (pi.workspace.agent_dir / "settings.json").write_text(settings)
        unready = pi.print("go", environment=environment)
        assert (unready.code, unready.stdout.strip()) == (0, "done")
        assert "foredeck: setting the engine up" in unready.stderr
        (manifest,) = pi.workspace.agent_dir.glob("npm/**/node_modules/pi-foredeck/package.json")
        before = files_in(manifest.parent)

        ready = pi.print("/foredeck setup", environment=environment, timeout_s=280)
        if "foredeck's engine is set up" not in ready.stdout + ready.stderr:
            pytest.skip(f"the engine cannot be installed here: {ready.stderr.strip()[-300:]}")
        with_foredeck(pi)
        assert files_in(manifest.parent) == before

        tarballs["9.9.9"] = next_version(tarball, tmp_path)
        manage("update", "--extensions")
        assert json.loads(manifest.read_text())["version"] == "9.9.9"
        manage("remove", "npm:pi-foredeck")
        assert not manifest.exists()
    check_command_line(pi)


def check_command_line(pi: Pi) -> None:
    """What was set up answers from `bin` of the state folder, with pages and MCP in it."""
    command = pi.workspace.foredeck_home / "bin" / "foredeck"

    def typed(*words: str) -> str:
        environment = pi.workspace.environment()
        done = subprocess.run([command, *words], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "1 hit" in typed("search", "seq")
    session = pi.workspace.session_files()[-1].stem.split("_")[-1]
    assert "with plain Pi" in typed("cost", session)
    (python,) = pi.workspace.foredeck_home.glob("engines/*/venv/bin/python")
    subprocess.run([python, "-c", "import foredeck_agents.mcp_server.server"], check=True)


def manifest_in(tarball: Path) -> bytes:
    """The package.json of a packed package."""
    with tarfile.open(tarball) as archive:
        return archive.extractfile("package/package.json").read()


def next_version(packed: Path, folder: Path) -> Path:
    """The same package as version 9.9.9."""
    with tarfile.open(packed) as tar:
        extract(tar, folder)
    manifest = folder / "package" / "package.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": "9.9.9"}))
    target = folder / "next.tgz"
    with tarfile.open(target, "w:gz") as tar:
        tar.add(folder / "package", "package")
    return target


@contextmanager
def registry(tarballs: dict[str, Path]) -> Iterator[str]:
    """An npm registry on loopback with these versions of one package; gives its address."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rsplit("/", 1)[-1]
            if name == "pi-foredeck":
                body = json.dumps(described()).encode()
            elif name.removesuffix(".tgz") in tarballs:
                body = tarballs[name.removesuffix(".tgz")].read_bytes()
            else:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    address = f"http://127.0.0.1:{server.server_port}"

    def described() -> dict[str, object]:
        versions = {}
        for version, path in tarballs.items():
            manifest = json.loads(manifest_in(path))
            digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
            dist = {"tarball": f"{address}/{version}.tgz", "integrity": f"sha512-{digest}"}
            versions[version] = {**manifest, "dist": dist}
        return {
            "name": "pi-foredeck",
            "dist-tags": {"latest": list(tarballs)[-1]},
            "versions": versions,
        }

    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()


def files_in(folder: Path) -> set[str]:
    """All files below a folder: the package must stay as it was installed."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_an_older_pi_gets_one_line_and_stays_plain(pi: Pi, tmp_path: Path) -> None:
    package = Path(pi.install.command[1]).parents[2]
    older = tmp_path / "older"
    shutil.copytree(package, older, ignore=shutil.ignore_patterns("docs", "examples"))
    (older / "node_modules").symlink_to(package.parents[1])
    manifest = json.loads((older / "package.json").read_text())
    (older / "package.json").write_text(json.dumps({**manifest, "version": "1.4.0"}))
    pi.install = PiInstall("1.4.0", (pi.install.command[0], str(older / manifest["bin"]["pi"])))
    model = serve(pi)
    ended = pi.print("go", foredeck=True)
    assert (ended.code, ended.stdout.strip()) == (0, "done")
    assert ended.stderr == (
        "foredeck is off: it needs Pi 1.5.2 or newer, and this is Pi 1.4.0. Update it (pi update, "
        "or npm install -g @earendil-works/pi-coding-agent) and start Pi again.\n"
    )
    assert not last_result(model.requests[-1]).startswith("@")
    assert "activate" not in model.requests[-1].request.tools
    assert not any(pi.workspace.foredeck_home.iterdir())


def test_of_two_copies_the_second_stands_back(pi: Pi, checkout: Path, tmp_path: Path) -> None:
    """Installed, and loaded from a checkout too: Pi would not start with the same tools twice."""
    copy = tmp_path / "copy"
    # What Python compiles beside its sources comes and goes while other tests run.
    compiled = shutil.ignore_patterns("__pycache__")
    for part in ("extensions", "ts-shim", "python"):
        shutil.copytree(checkout / part, copy / part, ignore=compiled)
    for file in ("package.json", "pyproject.toml"):
        shutil.copy(checkout / file, copy / file)
    for link in (".venv", "node_modules"):
        (copy / link).symlink_to(checkout / link)
    model = pi.serve(
        [call("bash", command="seq 300"), "done", call("bash", command="seq 300"), "end"]
    )
    rpc = pi.rpc("go", foredeck=True, extensions=[copy])
    assert len(rpc.engines()) == 1
    rpc.send("new_session")
    rpc.prompt("go on")
    (told,) = set(notified(rpc))  # once in each session
    assert f"{copy}/ts-shim/index.ts does nothing beside {checkout}/ts-shim/index.ts" in told
    for request in (model.requests[1], model.requests[-1]):
        assert last_result(request).startswith("@")
        assert request.request.tools.count("activate") == 1
