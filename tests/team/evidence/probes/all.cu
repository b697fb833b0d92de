// Every probe in one translation unit: one run of nvcc for each architecture. NAME__before, NAME__with and NAME__miss are
// the parent, the method in place, and something that only looks like it.
#include "async.cu"
#include "blackwell.cu"
#include "cluster.cu"
#include "hopper.cu"
#include "kinds.cu"
#include "scalar.cu"
#include "tensor.cu"
