"""Checks before the first step: what the config asks of this machine and this corpus."""

from attention import KernelError, Request, current_device, kernel_for
from common.errors import UserError
from data.batches.packing import Batch
from model.config import ModelConfig


def choose_kernels(config: ModelConfig, row_lengths: tuple[int, int]) -> dict[str, str]:
    """The kernel that training uses, by use of attention.

    ``row_lengths`` are the source and target tokens of a packed row. UserError if ``model.kernel`` cannot serve a use.
    """
    try:
        return {
            use: kernel_for(config.kernel, request) for use, request in kernel_requests(config, row_lengths).items()
        }
    except KernelError as error:
        raise UserError(f"model.kernel={config.kernel}: {error}") from None


def kernel_requests(config: ModelConfig, row_lengths: tuple[int, int]) -> dict[str, Request]:
    """What training asks of a kernel, by use of attention."""
    source, target = row_lengths

    def request(queries: int, keys: int, *, self_attention: bool) -> Request:
        return Request(
            device=current_device(),
            dtype=config.dtype,
            score=config.score,
            queries=queries,
            keys=keys,
            width=config.head_dim,
            value_width=config.value_width,
            bias=self_attention and config.positions in ("alibi", "relative"),
            dropout=config.attention_dropout > 0,
        )

    return {
        "encoder self-attention": request(source, source, self_attention=True),
        "decoder self-attention": request(target, target, self_attention=True),
        "encoder-decoder attention": request(target, source, self_attention=False),
    }


def check_position_table(config: ModelConfig, row_lengths: tuple[int, int], validation: list[Batch]) -> None:
    """UserError if learned positions end before a training row or a validation sentence does."""
    if config.positions != "learned":
        return
    sentences = [int(max(batch.source_positions.max(), batch.target_positions.max())) + 1 for batch in validation]
    longest = max(*row_lengths, *sentences)
    if longest > config.max_positions:
        raise UserError(
            f"model.max_positions={config.max_positions} ends before the longest row or validation sentence: "
            f"set it to {longest} or more, or choose other model.positions"
        )
