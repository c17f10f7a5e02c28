"""A job's life: from what was asked for to a result and a published check run."""
