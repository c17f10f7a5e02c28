"""Faults that the product must catch, applied inside a launch: ``--switch fault=NAME``, or ``validator selftest``.

A launch with a fault is stamped: it can neither become a golden nor be published as a result. What the catalogue says
of a fault (``model.py``) is read on the host's side as well; what a fault does is imported inside the launch alone.
"""

from __future__ import annotations

from validator.faults.catalogue import CATALOGUE, install
from validator.faults.model import Category, Fault, Place, Scenario

__all__ = ["CATALOGUE", "Category", "Fault", "Place", "Scenario", "install"]
