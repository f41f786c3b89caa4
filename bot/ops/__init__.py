"""Operations: logs, the clock, secrets, the event loop and the watchdog."""
