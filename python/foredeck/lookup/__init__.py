"""Reading what is stored, for people and programs: sessions, versions, layers for a request."""
