"""What the provider's cache holds, what a call costs, when a rewriting pays."""
