"""The first kernel of a task that is given as a PyTorch function: its operators one by one, written out plainly."""
