"""Where this program keeps its conversations, and which one is to be continued. What is shown of them is elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glassloop.cli.printing import say
from glassloop.cli.safe_text import one_line, visible
from glassloop.cli.screen import Line
from glassloop.cli.wording import program
from glassloop.config import Config, data_folder
from glassloop.core.errors import SessionError
from glassloop.core.journal import Journal, MemoryJournal, Session

if TYPE_CHECKING:
    from glassloop.cli.memory_instead import MemoryInstead
    from glassloop.cli.options import Options
    from glassloop.core.recording import Recorder
    from glassloop.sessions.store import Store

FILE_NAME = "sessions.db"
_IN_MEMORY = "This conversation is kept in memory only, and ends with this program."
_NOT_IN_MEMORY = "This conversation is kept in memory only, where that cannot be done."


@dataclass(frozen=True, slots=True)
class Keeping:
    """A journal, and what can be done with what it kept: nothing (`store` None) if that is memory alone."""

    journal: Journal
    store: Store | None = None
    on_disk: MemoryInstead | None = None

    @property
    def recorder(self) -> Callable[[str], Recorder] | None:
        """Who is shown the wire of a run."""
        return self.on_disk.wire_log if self.on_disk else None

    def store_of(self, session: Session | None) -> Store:
        """The store that has this session. Raises `SessionError` if it is in memory alone."""
        if self.store is None or self.on_disk is None or (session and self.on_disk.holds(session.id)):
            raise SessionError(_NOT_IN_MEMORY)
        return self.store

    def continued(self, reference: str | None) -> Session:
        """The session that a person means, to go on with; see `found`."""
        if self.store is None or self.on_disk is None:
            raise SessionError(_NOT_IN_MEMORY)
        return self.on_disk.continued(found(self.store, reference))

    def keeps(self, session: Session | None) -> bool:
        """Can this session be continued by another process?"""
        return bool(session and self.on_disk and not self.on_disk.holds(session.id))

    def note(self, options: Options, config: Config) -> None:
        """With runs that begin from now on it is noted what was said for them, so that they can be taken up."""
        from glassloop.cli.begun import noted

        if self.on_disk:
            self.on_disk.note(noted(options, config))

    def close(self) -> None:
        """Wait until all is written."""
        if self.on_disk:
            self.on_disk.close()


def open_store() -> Store:
    """The sessions of the user's data folder. Raises `SessionError` if they cannot be read."""
    from glassloop.sessions.store import Store

    try:
        store = Store(data_folder() / FILE_NAME)
    except OSError as error:
        raise SessionError(f"{error.filename}: sessions cannot be kept here: {error.strerror}") from error
    store.last()
    return store


def keeping_of(
    options: Options, config: Config, *, accept_changes: bool = False
) -> tuple[Keeping, Session | None]:
    """Where to keep what is said, and the session that the options name, if they do.

    Memory, with a warning, where the file cannot be used. Raises `SessionError` if it is needed, and where
    there is no such session.
    """
    if options.no_save:
        return Keeping(MemoryJournal()), None
    try:
        store = open_store()
    except SessionError as error:
        if options.continues:
            raise
        warn(f"{error}\n{_IN_MEMORY}")
        return Keeping(MemoryJournal()), None
    from glassloop.cli.memory_instead import MemoryInstead
    from glassloop.sessions.journal import SqliteJournal

    disk = SqliteJournal(
        store.path,
        take_over=options.take_over,
        accept_changes=accept_changes or options.accept_changes,
        secrets=lambda: config.secrets,
        folder=folder(),
    )
    journal = MemoryInstead(disk, warn)
    keeping = Keeping(journal, store, journal)
    keeping.note(options, config)
    return keeping, keeping.continued(options.resume) if options.continues else None


def folder() -> str:
    """The working folder, as sessions note it."""
    return os.getcwd()


def found(store: Store, reference: str | None) -> str:
    """The id of the session that a person means: by id, its beginning, name or words; the last one here for None."""
    if reference is None:
        last = store.last(folder())
        if last is None:
            raise SessionError(f"There is no session of this folder yet. See all: {program()} sessions list")
        return last.session_id
    try:
        return store.resolve(reference)
    except SessionError as error:
        ids = dict.fromkeys(hit.session_id for hit in store.search(reference))
        if not ids and error.kind == "gone":
            raise SessionError(
                f"there is no session {reference!r}, and none in which that was said. "
                f"See all: {program()} sessions list",
                "gone",
            ) from error
        if not ids:
            raise
        if len(ids) == 1:
            return next(iter(ids))
        some = "\n".join(f"  {one}  {one_line(titled(store, one))[:60]}" for one in list(ids)[:8])
        raise SessionError(
            f"{reference!r} is found in several sessions; name one of them:\n{some}"
        ) from error


def titled(store: Store, session_id: str) -> str:
    """What people know a session by."""
    info = store.info(session_id)
    return info.name or info.title


def unfinished(store: Store, session_id: str) -> bool:
    """Has the session a run that broke off after something was asked, or that waits for a person?"""
    if store.info(session_id).state == "idle":
        return False
    runs = store.timeline(session_id).runs
    return bool(runs) and runs[-1].status in ("running", "waiting", "needs_review")


def warn(text: str) -> None:
    """Say something that a person should know, on stderr."""
    head, *rest = visible(text).splitlines()
    with suppress(OSError):  # nobody reads it: that is no reason to stop
        say(Line(f"! {head}", "mend"))
        for line in rest:
            say(Line(f"  {line}", "mend"))
