"""Triton kernels: traced into a launch plan without candidate host code; interpreted where there is no GPU."""
