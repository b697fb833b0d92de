"""Source transforms of C++ kernels on the tree-sitter syntax tree. Each refuses what it cannot prove."""
