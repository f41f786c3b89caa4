"""The Home tab: its content, and the jobs that publish it."""
