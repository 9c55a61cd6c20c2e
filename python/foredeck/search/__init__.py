"""Full-text search over everything that is stored: a derived layer, and the questions to it."""
