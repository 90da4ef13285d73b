"""Programs that run without this project: those that an export takes along, and those that check one."""
