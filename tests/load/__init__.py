"""Load: 200 commands a second for a minute, against the real process (`make load`)."""
