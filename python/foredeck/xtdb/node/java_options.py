"""How Java is asked to run a node: small, quick to start, and quiet."""

from __future__ import annotations

from foredeck.xtdb.node.folder import NodeFolder
from foredeck.xtdb.node.runtime import Runtime


def java_options(runtime: Runtime, folder: NodeFolder) -> list[str]:
    """Everything between `java` and the namespace to run."""
    options = [
        "-Xms128m",
        "-Xmx1g",
        "-XX:MaxDirectMemorySize=1g",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # A commit runs much code a few times only: interpreted it takes a quarter longer.
        "-XX:CompileThresholdScaling=0.2",
        "-XX:+ExitOnOutOfMemoryError",
        "-Duser.timezone=UTC",
        "-Dfile.encoding=UTF-8",
        # Without it each answer waits for a delayed acknowledgement, 40 ms.
        "-Dsun.net.httpserver.nodelay=true",
        "-Dsun.net.httpserver.maxReqTime=60",
        # XTDB unpacks native libraries under a fixed name there.
        f"-Djava.io.tmpdir={folder.tmp}",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSX",
        *_class_archive(runtime),
        *("-cp", runtime.class_path),
    ]
    if runtime.java.version >= 22:
        options.insert(0, "--enable-native-access=ALL-UNNAMED")
    if runtime.java.version >= 24:
        options.insert(0, "--sun-misc-unsafe-memory-access=allow")
    return options


def _class_archive(runtime: Runtime) -> list[str]:
    """With an archive a start takes a third less. One that does not fit this Java, or is damaged,
    is ignored."""
    if runtime.rehearses is not None:
        return [f"-XX:ArchiveClassesAtExit={runtime.rehearses}"]
    if not runtime.class_archive.is_file():
        return []
    quietly = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return [f"-XX:SharedArchiveFile={runtime.class_archive}", *quietly]
