"""A release: packages that anyone can build again byte for byte, and what is in them."""
