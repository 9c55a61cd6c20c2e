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
    if config.store != "sqlite":
        raise ConfigError(f"Store {config.store!r} is not available in this version; use sqlite.")
    return open_sqlite(
        config.sqlite_file,
        synchronous=config.sqlite.synchronous,
        busy_timeout_ms=config.sqlite.busy_timeout_ms,
    )


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
