"""Transforms of CUDA C++ kernels, on the syntax tree."""
