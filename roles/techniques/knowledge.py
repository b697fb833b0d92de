"""Cards that hold knowledge alone: no mechanical transform, figures from the field."""

from roles.techniques.card import Card, Cell, Citation, Language, Numerics, Tier

BEST = Citation("CUDA C++ Best Practices Guide", "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html")
GUIDE = Citation("CUDA C++ Programming Guide", "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html")
PTX = Citation("PTX ISA", "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html")
CUTLASS = Citation("CUTLASS documentation", "https://docs.nvidia.com/cutlass/index.html")
FLASH = Citation("Dao et al., FlashAttention, 2022", "https://arxiv.org/abs/2205.14135")
DECODING = Citation(
    "Dao et al., Flash-Decoding for long-context inference, 2023",
    "https://crfm.stanford.edu/2023/10/12/flashdecoding.html",
)
BOTH: tuple[Language, ...] = ("cuda", "triton")


def knowledge(
    name: str,
    title: str,
    tier: Tier,
    category: str,
    where: tuple[Cell, ...],
    helps: str,
    hurts: str,
    mechanism: str,
    gain: float,
    source: Citation,
    languages: tuple[Language, ...] = ("cuda",),
    numerics: Numerics = Numerics.EXACT,
    evidence: str = "public practice; not measured by this team yet",
) -> Card:
    """A card without a transform; what it does not say for itself it says for all of them."""
    return Card(
        name=name,
        title=title,
        tier=tier,
        category=category,
        cells=where,
        languages=languages,
        helps=helps,
        hurts=hurts,
        bottleneck=f"what the profile must show first: {helps}",
        mechanism=mechanism,
        disproof="the metric that the mechanism names does not move",
        fallback="another card of the same matrix cell",
        expected_gain=gain,
        evidence=evidence,
        source=source,
        numerics=numerics,
    )
