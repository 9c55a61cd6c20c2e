"""What is installed is what was locked, on a Java that can run it."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from foredeck.errors import StoreError
from foredeck_xtdb.installing import Jar, fetch_all, install, read_lock
from foredeck_xtdb.node import NodeFolder, private_node
from foredeck_xtdb.runtime import (
    COMPILED,
    Java,
    Runtime,
    find_java,
    java_options,
    java_version,
    node_files,
)

pytest.importorskip("jgo", reason="the extra foredeck[xtdb] is not installed")


def repository(folder: Path, jar: Jar, data: bytes) -> Path:
    """A Maven repository with one jar."""
    place = folder / jar.group.replace(".", "/") / jar.artifact / jar.version
    place.mkdir(parents=True)
    (place / jar.name).write_bytes(data)
    return folder


DATA = b"bytes of a jar"
JAR = Jar("org.example", "thing", "1.0", hashlib.sha256(DATA).hexdigest())


def test_a_jar_of_the_cache_is_used(tmp_path: Path) -> None:
    cache = repository(tmp_path / "cache", JAR, DATA)
    names: list[str] = []
    (path,) = fetch_all([JAR], cache, tmp_path / "lib", names.append)
    assert path.read_bytes() == DATA
    assert names == ["thing-1.0.jar"]
    fetch_all([JAR], cache, tmp_path / "lib", names.append)


def test_a_jar_with_other_bytes_is_refused_and_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jgo.maven._core.DEFAULT_REMOTE_REPOS", {})
    cache = repository(tmp_path / "cache", JAR, b"other bytes")
    with pytest.raises(StoreError, match=r"org\.example:thing:1\.0 cannot be fetched"):
        fetch_all([JAR], cache, tmp_path / "lib", lambda _name: None)
    assert not list(cache.rglob("*.jar"))
    with pytest.raises(StoreError, match="M2_REPO"):
        fetch_all([JAR], cache, tmp_path / "lib", lambda _name: None)
    assert not list((tmp_path / "lib").iterdir())


def test_the_lock_names_every_jar_once() -> None:
    jars = read_lock(node_files() / "jars.lock")
    assert len({jar.name for jar in jars}) == len(jars) > 30
    assert all(len(jar.sha256) == 64 for jar in jars)
    assert {"xtdb-core", "xtdb-rocksdb", "xtdb-jdbc"} <= {jar.artifact for jar in jars}


def test_the_pom_asks_for_nothing_that_is_not_locked() -> None:
    pom = (node_files() / "pom.xml").read_text()
    for jar in read_lock(node_files() / "jars.lock"):
        if jar.group == "com.xtdb":
            assert f"<artifactId>{jar.artifact}</artifactId>" in pom
            assert f"<version>{jar.version}</version>" in pom


def fake_java(folder: Path, version: str) -> str:
    """A program that says it is a Java."""
    folder.mkdir(parents=True)
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("text", "version"), [("1.8.0_392", 8), ("11.0.2", 11), ("17.0.15", 17), ("25", 25)]
)
def test_versions_of_java(tmp_path: Path, text: str, version: int) -> None:
    assert java_version(fake_java(tmp_path / "bin", text)) == version


def test_a_program_that_is_not_java_is_ignored(tmp_path: Path) -> None:
    assert java_version(str(tmp_path / "none")) is None
    assert java_version("/bin/true") is None


def test_the_first_java_that_is_new_enough_is_used(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    home = fake_java(tmp_path / "home" / "bin", "21.0.1")
    environ = {"FOREDECK_XTDB_JAVA": old, "JAVA_HOME": str(tmp_path / "home"), "PATH": ""}
    java = find_java(environ)
    assert (java.path, java.version) == (home, 21)
    assert find_java({**environ, "FOREDECK_XTDB_JAVA": home}).path == home


def test_leftovers_of_a_killed_installation_are_removed(runtime: Runtime, tmp_path: Path) -> None:
    folder = tmp_path / "xtdb"
    (folder / "building-x" / "runtime" / "lib").mkdir(parents=True)
    (folder / runtime.folder.name).symlink_to(runtime.folder)
    assert install(tmp_path, lambda _note: None).folder == folder / runtime.folder.name
    assert not (folder / "building-x").exists()


def test_the_first_node_that_ends_leaves_an_archive_of_classes(
    runtime: Runtime, tmp_path: Path
) -> None:
    folder = tmp_path / "runtime"
    folder.mkdir()
    for name in ("lib", "config", COMPILED):
        (folder / name).symlink_to(runtime.folder / name)
    fresh = Runtime(folder, runtime.java)
    with private_node(tmp_path / "node", fresh):
        assert not fresh.class_archive.exists()
    if not fresh.class_archive.is_file():
        pytest.skip("this Java makes no class archive")
    options = [*java_options(fresh, NodeFolder(tmp_path).tmp), "-Xlog:class+load"]
    done = subprocess.run(
        [fresh.java.path, *options, "clojure.main", "-e", "(require 'xtdb.query)"],
        capture_output=True,
        text=True,
        check=True,
    )
    (loaded,) = [line for line in done.stdout.splitlines() if "] xtdb.query__init " in line]
    assert loaded.endswith("source: shared objects file (top)")


def test_an_archive_that_does_not_fit_is_passed_over_in_silence(
    runtime: Runtime, tmp_path: Path
) -> None:
    folder = tmp_path / "runtime"
    folder.mkdir()
    for name in ("lib", "config", COMPILED):
        (folder / name).symlink_to(runtime.folder / name)
    other = Runtime(folder, runtime.java)
    other.class_archive.write_bytes(b"written by another Java" * 1000)
    with private_node(tmp_path / "node", other) as node:
        assert node.running() is not None
    assert {line.split()[2] for line in node.log_file.read_text().splitlines()} == {"INFO"}


def test_another_java_at_the_same_place_has_another_archive(tmp_path: Path) -> None:
    java = Java(fake_java(tmp_path / "bin", "21.0.1"), 21)
    before = Runtime(tmp_path, java).class_archive
    assert before == Runtime(tmp_path, java).class_archive
    Path(java.path).write_text("#!/bin/sh\necho 'openjdk version \"21.0.2 LTS\"' >&2\n")
    assert Runtime(tmp_path, java).class_archive != before
