"""Plain Pi against Pi with foredeck, on tasks that say themselves whether they are done."""
