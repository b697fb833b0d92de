import torch


def close_to(got, want, rtol, atol):
    if got.shape != want.shape:
        return False, "another shape"
    good = torch.allclose(got.float(), want.float(), rtol=rtol, atol=atol)
    return good, "" if good else "not close"
