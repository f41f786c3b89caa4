"""Health, readiness, status and the doctor."""
