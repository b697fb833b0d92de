"""The judge of CUDA kernels: the same requests, on a GPU."""
