// Asynchronous copies on a CPU: a copy is done when its thread waits for it, no earlier, so that nothing may rely on more.
#pragma once
#include "cuda_runtime.h"

void __pipeline_memcpy_async(void* to, const void* from, size_t size, size_t zeros = 0);
void __pipeline_commit();
void __pipeline_wait_prior(size_t left);
