"""Reading what is stored, for people and programs: sessions, chats, prompts, versions, layers."""
