"""The terminal: commands, screens, and what a person is told when something goes wrong."""
