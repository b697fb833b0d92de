"""Tasks in formats that people already have, one package each: read into a task folder, and written back."""
