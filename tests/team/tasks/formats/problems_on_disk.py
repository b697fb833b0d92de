"""Problems in KernelBench's format, written to a folder."""

from pathlib import Path

HEAD = "import torch\nfrom torch import nn\n\n\n"
HEADED = (
    HEAD
    + """\
class Model(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.linear = nn.Linear(features, classes)
        self.norm = nn.LayerNorm(classes)

    def forward(self, x, labels):
        y = torch.relu(self.norm(self.linear(x)))
        return y, nn.functional.cross_entropy(y, labels)


batch = 12
features = 20
classes = 9


def get_inputs():
    return [torch.rand(batch, features), torch.randint(0, classes, (batch,))]


def get_init_inputs():
    return [features, classes]
"""
)


def plain(forward: str, shape: str = "(rows, cols)", rows: int = 24, cols: int = 40, draw: str = "torch.randn") -> str:
    """A problem of one input and one expression."""
    return (
        HEAD
        + f"class Model(nn.Module):\n    def forward(self, x):\n        return {forward}\n\n\n"
        + f"rows = {rows}\ncols = {cols}\n\n\ndef get_inputs():\n    return [{draw}({shape})]\n\n\n"
        + "def get_init_inputs():\n    return []\n"
    )


def write_problem(folder: Path, text: str = HEADED, name: str = "problem_file.py") -> Path:
    """The problem's file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name
