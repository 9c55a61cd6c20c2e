"""The package with all wheels: what is fetched for whom, and what its lock file then says."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest

from foredeck_bench import release
from foredeck_bench.release import BuildFailed

PUBLISHED, SOURCE = b"a published wheel", b"sources"
LOCK = (
    "# a comment\n"
    f"pub-lished==1.0 \\\n    --hash=sha256:{hashlib.sha256(PUBLISHED).hexdigest()}\n"
    f"only-source==2.0 ; python_version > '3' \\\n"
    f"    --hash=sha256:{hashlib.sha256(SOURCE).hexdigest()}\n"
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What pip is asked; in its place two wheels are written, one of them built."""
    words: list[list[str]] = []

    def run(command: list[str], folder: Path, _: dict[str, str]) -> bytes:
        words.append(command)
        if "wheel" in command:
            (folder / "wheels").mkdir()
            (folder / "wheels" / "pub_lished-1.0-cp311-cp311-linux.whl").write_bytes(PUBLISHED)
            (folder / "wheels" / "only_source-2.0-py3-none-any.whl").write_bytes(b"built here")
        else:
            lock = Path(command[command.index("-r") + 1]).read_text()
            assert "pub-lished==1.0" in lock
            assert "only-source" not in lock
        return b""

    monkeypatch.setattr(release, "run", run)
    return words


def packed(folder: Path) -> Path:
    (folder / "package").mkdir()
    (folder / "package" / "requirements.lock").write_text(LOCK)
    with tarfile.open(folder / "pi-foredeck-0.1.0.tgz", "w:gz") as tar:
        tar.add(folder / "package", "package")
    return folder


def test_a_wheel_that_was_built_is_locked_beside_its_sources(
    tmp_path: Path, asked: list[list[str]]
) -> None:
    made = release.bundle(packed(tmp_path), [])
    assert made.name == "pi-foredeck-0.1.0-offline.tgz"
    with tarfile.open(made) as tar:
        release.extract(tar, tmp_path / "out")
    package = tmp_path / "out" / "package"
    digest = hashlib.sha256(b"built here").hexdigest()
    lock = (package / "requirements.lock").read_text()
    assert lock == LOCK.removesuffix("\n") + f" \\\n    --hash=sha256:{digest}\n"
    assert len(list((package / "wheels").iterdir())) == 2
    pythons = [words[words.index("--python-version") + 1] for words in asked[1:]]
    assert pythons == list(release.PYTHONS)
    # Made again, the bundle of before is not taken for the package.
    assert release.bundle(tmp_path, []) == made


def test_for_another_platform_this_ones_wheels_are_left_out(
    tmp_path: Path, asked: list[list[str]]
) -> None:
    made = release.bundle(packed(tmp_path), ["win_amd64", "macosx_11_0_arm64"])
    with tarfile.open(made) as tar:
        wheels = [name for name in tar.getnames() if name.endswith(".whl")]
    assert wheels == ["package/wheels/only_source-2.0-py3-none-any.whl"]
    platforms = {words[words.index("--platform") + 1] for words in asked[1:]}
    assert platforms == {"win_amd64", "macosx_11_0_arm64"}


def test_what_must_be_compiled_is_refused(
    tmp_path: Path, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "PUBLISHED", b"compiled here")
    with pytest.raises(BuildFailed, match="pub_lished"):
        release.bundle(packed(tmp_path), [])
    assert len(asked) == 1
