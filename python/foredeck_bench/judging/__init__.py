"""What prompts cost, and whether the model could see what it used next: to compare rules by."""
