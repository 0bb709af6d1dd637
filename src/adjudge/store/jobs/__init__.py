"""Jobs, the outbox, dead letters, workers: the queue in the database."""
