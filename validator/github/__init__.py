"""GitHub: what a change calls for, check runs, comments, re-baseline commits, setting a repository up."""
