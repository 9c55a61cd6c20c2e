"""What may be folded: the protocol, the policies, and what they are asked."""
