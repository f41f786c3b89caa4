"""The load test: 200 commands a second for a minute, sent to the real process (`make load`)."""
