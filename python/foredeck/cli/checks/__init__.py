"""What `foredeck doctor` checks: each module gives findings about one part of the machine."""
