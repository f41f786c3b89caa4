"""The audit log: messages and command-line output."""
