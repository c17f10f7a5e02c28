"""The report as one page of HTML that needs nothing else: no network, no fonts, no other file."""

from validator.report.html.page import Pair, render_comparison, render_report

__all__ = ["Pair", "render_comparison", "render_report"]
