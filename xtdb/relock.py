"""Writes jars.lock anew from pom.xml, after a version in there has changed: relock.py

jgo resolves what the pom asks for, so no Maven is needed; `git diff` shows what came of it.
"""

from __future__ import annotations

import hashlib
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from jgo.maven import MavenContext

FOLDER = Path(__file__).resolve().parent
NAMESPACE = {"m": "http://maven.apache.org/POM/4.0.0"}
HEAD = "# Every jar of the node with its SHA-256; made from pom.xml by relock.py.\n"


def main() -> None:
    """Resolve, fetch and hash every jar."""
    context = MavenContext(repo_cache=Path(tempfile.mkdtemp()), local_repos=[])
    dependencies = []
    for element in ElementTree.parse(FOLDER / "pom.xml").iterfind(".//m:dependency", NAMESPACE):
        group, artifact, version = (
            element.findtext(f"m:{name}", None, NAMESPACE)
            for name in ("groupId", "artifactId", "version")
        )
        dependencies.append(context.create_dependency(f"{group}:{artifact}:{version}"))
    asked, more = context.resolver.resolve(dependencies, transitive=True)
    lines = set()
    for dependency in [*asked, *more]:
        digest = hashlib.sha256(dependency.artifact.resolve().read_bytes()).hexdigest()
        coordinates = f"{dependency.groupId}:{dependency.artifactId}:{dependency.version}"
        lines.add(f"{digest}  {coordinates}\n")
    text = HEAD + "".join(sorted(lines, key=lambda line: line.split()[1]))
    (FOLDER / "jars.lock").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
