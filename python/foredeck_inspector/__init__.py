"""The inspector: pages on loopback that show what is stored."""
