"""Operating the bot: logs, metrics, the doctor, the manifest and the command line."""
