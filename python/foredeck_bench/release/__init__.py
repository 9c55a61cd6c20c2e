"""A release: reproducible packages, and what is in them."""
