"""The Bolt app's listeners, with one module for each topic."""
