"""Results to one HTML file that opens offline, and to Markdown. Never starts work."""

from boardcluster.report.render import write_report

__all__ = ["write_report"]
