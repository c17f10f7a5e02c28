"""Faults that the product must catch, applied inside a launch: ``--switch fault=NAME``.

A launch with a fault is stamped: it can neither become a golden nor be published as a result.
"""

from __future__ import annotations

from validator.faults.catalogue import CATALOGUE, Fault, install

__all__ = ["CATALOGUE", "Fault", "install"]
