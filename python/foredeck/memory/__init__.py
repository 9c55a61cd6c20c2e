"""Memory across sessions: who has said what, how long it is kept, and where it is shown.

trust       this user's key, and how far any document is trusted
entry       one entry, what each place takes, and who leaves it when it is full
words       short texts compared
reading     entries in the store
keeping     what foredeck and models may do: keep, propose, confirm, inherit
user_acts   what only the user does: add, accept, edit, pin, demote, delete, purge
ground      whether the files and commits that entries rest on are as they were
sections    entries in the head
session     memory as one session sees it, and which entries an answer has used
findings    what was found in a session's data
question    what a model is asked of a chat, and its answer; judging: what becomes of each line
extracting  from the turns of a session to entries
describing  entries for the user, and those that wait for their word
"""
