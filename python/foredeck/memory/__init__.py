"""Memory across sessions: who has said what, how long it is kept, and where it is shown.

trust       this user's key, and how far any document is trusted
entry       one entry, what each place takes, who leaves it when it is full; entries in the store
words       short texts compared
keeping     what foredeck and models may do: keep, propose, confirm, inherit
user_acts   what only the user does: add, accept, edit, pin, demote, delete, purge
ground      what entries rest on, and whether that has changed
sections    entries in the head
session     memory as one session sees it, which entries an answer has used, findings in its data
judging     what a model is asked of a chat, its answer, and what becomes of each line
extracting  from the turns of a session to entries
describing  entries for the user, and those that wait for their word
"""
