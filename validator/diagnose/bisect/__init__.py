"""Which package change flips the outcome: a smallest set of changes between two package sets (docs/bisect.md)."""
