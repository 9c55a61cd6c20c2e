"""What stored file versions answer: stale edits, and earlier states."""
