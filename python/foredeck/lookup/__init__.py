"""Reading what is stored, for people and programs: sessions, chats, prompts, versions, and layers for
a request."""
