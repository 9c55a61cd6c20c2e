"""Old messages lose their text when a user asks for it; what they led to stays."""
