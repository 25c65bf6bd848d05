"""Results to one HTML file that opens offline, and to Markdown. Never starts work."""

from boardcluster.report.render import Written, write_report, write_source

__all__ = ["Written", "write_report", "write_source"]
