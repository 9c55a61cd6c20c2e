"""Reading what is stored, for people and programs: sessions, prompts, versions, layers."""
