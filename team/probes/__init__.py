"""What this machine has, each thing tried rather than looked up."""
