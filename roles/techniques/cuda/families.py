"""All families of designs."""

from roles.techniques.cuda.design import Family
from roles.techniques.cuda.matmul_tensor import MATMUL_TENSOR
from roles.techniques.cuda.matmul_tile import MATMUL_TILE
from roles.techniques.cuda.row_groups import ROWS
from roles.techniques.cuda.shuffle import SHUFFLE
from roles.techniques.cuda.transpose import TRANSPOSE
from roles.techniques.cuda.vectorise import ELEMENTS

FAMILIES: tuple[Family, ...] = (MATMUL_TILE, MATMUL_TENSOR, ROWS, SHUFFLE, ELEMENTS, TRANSPOSE)
