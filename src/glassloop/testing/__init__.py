"""Real servers for tests: `server` plays scripted replies, `quirks` plays what real endpoints get wrong."""
