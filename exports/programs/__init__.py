"""Programs that run without this project: the ones included in an export, and the one that checks it."""
