"""A recorded session, played through the real Pi on the providers' twin."""
