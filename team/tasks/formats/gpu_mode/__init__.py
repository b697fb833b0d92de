"""GPU MODE: a folder with task.yml, reference.py and a submission that defines ``custom_kernel(data)``."""
