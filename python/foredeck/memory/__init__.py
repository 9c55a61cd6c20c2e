"""Memory across sessions: who has said what, how long it is kept, and where it is shown.

user       the key by which this user's word is told from everybody else's
trust      user-stated or derived, of any document
entry      one entry as it is worked with, and what it is called
rules      what each place takes, and who leaves it when it is full
reading    entries in the store
keeping    every act on them: added, proposed, accepted, pinned, deleted, ...
"""
