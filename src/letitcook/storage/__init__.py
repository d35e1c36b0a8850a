"""Files: run folders, spaces and settings as plain data, objects by name."""
