"""Memory across sessions: who has said what, how long it is kept, and where it is shown.

user       the key that proves what this user has said
trust      user-stated or derived, of any document
entry      one entry as it is worked with
rules      what each place takes, and who leaves it when it is full
words      words of short texts, so that two can be compared
lasting    whether a sentence says that it holds for longer
reading    entries in the store
keeping    what foredeck and models may do: keep, propose, reword, confirm
user_acts  what only the user does: add, accept, edit, pin, demote, delete
reading_out  from what was said in some turns to entries; extracting: the rules for that
ground     whether the files and commits that entries rest on are as they were
rendering  entries as the model reads them; sections: their place in the head
session    memory as one session sees it, and which entries an answer has used
inbox      what waits for the user's word
describing entries for the user, and the walk from one to its source
purging    entries out of everything that is stored
"""
