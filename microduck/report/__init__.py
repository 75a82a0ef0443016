"""Reports of a policy: report.json for programs, report.html for people, maybe offline and on a phone."""

REPORT_FILE, PAGE_FILE = "report.json", "report.html"
"""The two files of a report."""
