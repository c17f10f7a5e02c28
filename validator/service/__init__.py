"""The web app: receives GitHub's events, hands jobs to an engine, remembers every result and shows it."""
