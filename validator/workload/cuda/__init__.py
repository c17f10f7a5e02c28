"""Fingerprints on a GPU: leaves are digested where they lie, by one kernel for thousands of them."""
