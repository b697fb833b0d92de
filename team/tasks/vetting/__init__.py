"""``kernelteam check``: what is wrong with a task, said before a GPU second is spent on it."""
