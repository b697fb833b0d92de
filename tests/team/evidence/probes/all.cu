// Every probe in one translation unit: one run of nvcc for each architecture.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>

#include "scalar.cu"
