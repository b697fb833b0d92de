"""A PyTorch function as a graph of plain operators, traced on tensors without memory."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

_aten: Any = torch.ops.aten
_FURTHER = (
    *(_aten.native_layer_norm, _aten.native_group_norm, _aten.native_batch_norm, _aten.addmm, _aten.baddbmm),
    *(_aten._native_batch_norm_legit_no_training, _aten._native_batch_norm_legit, _aten.cudnn_batch_norm),
    *(_aten._softmax, _aten._log_softmax, _aten.gelu, _aten.hardtanh, _aten.leaky_relu, _aten.elu, _aten.addmv),
    *(_aten.linalg_vector_norm, _aten.std, _aten.std_mean, _aten.addcmul, _aten.addcdiv, _aten.softplus),
    *(_aten.nll_loss_forward, _aten.nll_loss2d_forward, _aten.glu, _aten.triu, _aten.tril, _aten.index_select),
    *(_aten.hardsigmoid, _aten.hardswish, _aten.masked_fill, _aten.dot, _aten.mv, _aten.stack, _aten.native_dropout),
    *(_aten._fused_rms_norm, _aten._safe_softmax, _aten._scaled_dot_product_flash_attention_for_cpu),
)


@cache
def _table() -> dict[Any, Callable[..., Any]]:
    return {**core_aten_decompositions(), **get_decompositions(_FURTHER)}


def traced(function: Callable[..., Any], arguments: Sequence[torch.Tensor]) -> GraphModule:
    """The graph of ``function(*arguments)``; ``arguments`` are on the device ``meta``."""
    with torch.no_grad():
        graph = make_fx(torch.func.functionalize(function), decomposition_table=_table())(*arguments)
    for node in [one for one in graph.graph.nodes if one.target is _aten.copy_.default]:
        if node.args[0].op == "placeholder":  # what a function leaves behind in its arguments is no result
            graph.graph.erase_node(node)
    graph.graph.eliminate_dead_code()
    return graph


def draws(graph: GraphModule) -> bool:
    """Whether a graph draws random numbers."""
    return any(
        torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        for node in graph.graph.nodes
        if node.op == "call_function"
    )
