"""Machinery that runs beside requests: jobs, the outbox, tasks, one look-up for many askers."""
