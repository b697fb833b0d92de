import torch
from task import input_t, output_t
from utils import close_to


def generate_input(rows: int, cols: int, seed: int) -> input_t:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    values = torch.randn(rows, cols, device="cuda", dtype=torch.float32, generator=generator)
    weight = torch.randn(cols, device="cuda", dtype=torch.float32, generator=generator)
    output = torch.empty(rows, device="cuda", dtype=torch.float32)
    return values, weight, output


def ref_kernel(data: input_t) -> output_t:
    values, weight, output = data
    output[...] = (values * weight).sum(dim=1)
    return output


def check_implementation(data, output):
    return close_to(output, ref_kernel(data), rtol=1e-3, atol=1e-3)
