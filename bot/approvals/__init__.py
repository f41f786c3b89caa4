"""Requests that a second person approves or denies."""
