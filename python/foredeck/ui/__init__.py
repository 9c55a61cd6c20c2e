"""The inspector: pages on loopback that show what is stored. Needs the extra `foredeck[ui]`."""
