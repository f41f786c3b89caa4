"""The Home tab: its content, and the job that publishes it."""
