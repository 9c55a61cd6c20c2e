"""Opening the store and the file source that a configuration asks for."""

from __future__ import annotations

from pathlib import Path

from foredeck.config import Config
from foredeck.errors import ConfigError
from foredeck.sources import DiskSource, FilesystemMap, Limits, Mount, default_filesystem_id
from foredeck.store.protocol import Store
from foredeck.store.sqlite import open_sqlite


def open_store(config: Config) -> Store:
    """The configured store. Raises `StoreUnavailable` where it cannot be opened."""
    if config.store == "xtdb":
        return _open_xtdb(config)
    return open_sqlite(
        config.sqlite_file,
        synchronous=config.sqlite.synchronous,
        busy_timeout_ms=config.sqlite.busy_timeout_ms,
    )


def _open_xtdb(config: Config) -> Store:
    """A server that somebody else runs where one is named, else foredeck's own node."""
    # Imported here: who uses SQLite does not wait for an HTTP library.
    from foredeck.store.xtdb import open_own_node, open_xtdb

    xtdb = config.xtdb
    if xtdb.url is None:
        return open_own_node(
            config.home,
            topology=xtdb.topology,
            namespace=xtdb.namespace,
            timeout_ms=xtdb.timeout_ms,
        )
    return open_xtdb(
        xtdb.url,
        token=None if xtdb.token_file is None else _read_token(xtdb.token_file),
        namespace=xtdb.namespace,
        timeout_ms=xtdb.timeout_ms,
    )


def _read_token(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"xtdb.token_file: {file} cannot be read: {error}") from error


def open_filesystems(config: Config, cwd: str) -> FilesystemMap:
    """The agent's file systems: this machine's or a container's, and the configured mounts."""
    machine = default_filesystem_id(Path(config.home))
    return FilesystemMap(
        config.sources.filesystem_id or machine,
        [
            Mount(
                mount.prefix,
                None if mount.host_path is None else str(mount.host_path),
                mount.filesystem_id,
            )
            for mount in config.sources.mounts
        ],
        device_fallback=config.sources.device_fallback,
        cwd=cwd,
        host_id=machine,
        sandboxed=config.sources.sandboxed,
    )


def open_source(config: Config, store: Store, filesystems: FilesystemMap) -> DiskSource:
    """The source that sees the disk."""
    limits = Limits(config.limits.max_file_bytes, config.limits.discovered_paths)
    return DiskSource(store, filesystems, limits)
