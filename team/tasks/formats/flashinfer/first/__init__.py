"""First kernels in Triton for imported definitions: right and plain, each a file that becomes a task's source."""
