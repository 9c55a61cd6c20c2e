"""Memory in an opened session, and its part of the head."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from foredeck.config import Config, foreign_owner, user_rules_file
from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects, SessionInfo
from foredeck.context.state.session import SessionFolder
from foredeck.context.state.stored_chat import addresses_back
from foredeck.errors import Corrupt, ForedeckError, Missing
from foredeck.hosts.protocol import SessionOpenParams
from foredeck.memory.entry import caps_of
from foredeck.memory.ground import GroundReader
from foredeck.memory.keeping import Memory, inherited_memory
from foredeck.memory.sections import RulesSection
from foredeck.memory.session import Inheritance, PromoteFinding, SessionMemory
from foredeck.memory.trust import KEY_FILE, load_user, session_statement, user_of
from foredeck.memory.words import all_words
from foredeck.model.memory import MemoryDocument
from foredeck.store.store import Store

log = logging.getLogger(__name__)

MOST_NAMES, MOST_FOLDERS = 200, 50
"""Names read per folder, and folders read within the project's."""


def state_warnings(config: Config, store: Store) -> Iterator[str]:
    """Warnings about the state folder, before anything is stored in it."""
    home = config.home
    # Root may use another user's folder, who could then put words into the user's mouth.
    if home.is_dir() and (owner := foreign_owner(home)) is not None:
        yield (
            f"The state folder {home} belongs to user {owner}, who can read and change what is in "
            "it: set FOREDECK_HOME to a folder of your own."
        )
    if (home / KEY_FILE).exists():
        try:
            load_user(home)
        except (OSError, ForedeckError) as error:
            yield f"Nothing counts as said by you, and nothing is remembered: {error}"
    elif store.query("memory", limit=1):
        yield (
            f"{home / KEY_FILE} is missing: a new one is made, and nothing that is remembered "
            "counts as said by you. Bring the old one back from a backup."
        )


def begun_by(config: Config, params: SessionOpenParams) -> str | None:
    """The user's signature on a new session; None for a subagent's."""
    user = user_of(config) if params.by_user and params.started_by is None else None
    return None if user is None else user.vouch(session_statement(params.session))


def memory_of(
    config: Config, objects: Objects, chat: Chat, session_folder: SessionFolder
) -> SessionMemory | None:
    """Memory as a session sees it; None in a replay, or if the user's key cannot be read."""
    info, user = objects.info, user_of(config) if objects.info.is_live else None
    if user is None:
        return None
    memory = Memory(objects.store, user, caps_of(config), by=info.id)
    return SessionMemory(
        info.id,
        session_folder.project.id,
        memory,
        GroundReader(objects.store, session_folder.filesystems),
        _inheritance(objects, chat, memory),
        partial(words_of_files, info.cwd),
        config.tools.search,
    )


def words_of_files(folder: str) -> frozenset[str]:
    names = _names_in(folder)
    inner = (name for one in names[:MOST_FOLDERS] for name in _names_in(str(Path(folder) / one)))
    return all_words(" ".join([*names, *inner]))


def _names_in(folder: str) -> list[str]:
    try:
        names = sorted(path.name for path in Path(folder).iterdir())
    except OSError:
        return []
    # A folder may hold any number of files, and this is for a first impression.
    return [name for name in names if not name.startswith(".")][:MOST_NAMES]


def _inheritance(objects: Objects, chat: Chat, memory: Memory) -> Inheritance | None:
    document = None if chat.log.newest else objects.document()
    if document is None or document.parent_session is None:
        return None
    return MemoryOfParent(objects, chat, memory, document.parent_session)


def rules_section(config: Config, info: SessionInfo) -> RulesSection | None:
    """The user's standing rules in the head."""
    return (
        RulesSection(user_rules_file()) if "rules" in config.head.shows and info.is_live else None
    )


@dataclass(slots=True)
class MemoryOfParent:
    """What a fork takes over of its parent's memory."""

    objects: Objects
    chat: Chat
    reader: Memory
    parent: str
    _is_done: bool = False

    def inherit(self) -> None:
        if self._is_done:
            return
        self._is_done = True
        try:
            for document in self._taken():
                # Committed with the fork's first call: it is there whole or not at all, and that
                # call's head has it as the parent's had.
                self.objects.workspace.put(document)
        except (Corrupt, Missing) as error:
            log.warning("what the parent knew was not taken over: %s", error)

    def uncommitted(self) -> Iterable[MemoryDocument]:
        pending = self.objects.workspace.pending.values()
        return [document for document in pending if isinstance(document, MemoryDocument)]

    def _taken(self) -> list[MemoryDocument]:
        messages = [item.key.address for item in self.chat.branch.plan.items]
        lineage = sorted(self.objects.info.family)
        path = set(addresses_back(self.objects.store, messages, lineage, self._blob))
        now = self.reader.now_ms()
        return inherited_memory(self.reader, self.parent, self.objects.info.id, path, now)

    def _blob(self, address: str) -> bytes:
        data = self.objects.workspace.blobs.get(address)
        return self.objects.store.blob(address) if data is None else data


def promote_finding(
    config: Config, objects: Objects, memory: SessionMemory | None
) -> PromoteFinding | None:
    if config.tools.findings == "off" or memory is None:
        return None
    return PromoteFinding(memory.memory, objects.info.id, config.memory.data_tools)
