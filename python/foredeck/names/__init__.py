"""What people and models call objects and sessions, and what they mean by a name."""
