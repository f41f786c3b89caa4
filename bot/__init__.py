"""Gatehouse: approvals, quotas and safe list changes for three web services, in Slack."""

__version__ = "0.2.0"
