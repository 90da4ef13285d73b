"""What each head is worth: BLEU without it (Michel et al. 2019, section 3.2)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from sacrebleu.metrics.bleu import BLEU

from evaluation.comparison.significance import Effects, Estimate, of_system, pool, statistics_of
from evaluation.groups import group_sentences
from evaluation.sentences import Sentence
from evaluation.translate import Translator
from model.config import ModelConfig
from model.transformer import Params


class Head(NamedTuple):
    """The position of a head in the model; layers and heads are counted from 0."""

    stack: str
    use: str
    layer: int
    head: int

    @property
    def attention(self) -> str:
        """The attention that the head belongs to, and its layer, counted from 1."""
        use = {"self_attention": "self-attention", "cross_attention": "encoder-decoder attention"}[self.use]
        return f"{self.stack if self.use == 'self_attention' else ''} {use} {self.layer + 1}".strip()


def heads_of(config: ModelConfig) -> list[Head]:
    layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
    uses = ("encoder", "self_attention"), ("decoder", "self_attention"), ("decoder", "cross_attention")
    places = [(stack, use, layer) for stack, use in uses for layer in range(layers[stack])]
    return [Head(*place, head) for place in places for head in range(config.num_heads)]


def without_head(params: Params, head: Head, heads: int) -> Params:
    """The parameters with zeros where the output projection reads this head."""
    blocks = params[head.stack]
    block = blocks[head.layer]
    attention = block[head.use]
    kernel = attention["output"]["kernel"]
    width = len(kernel) // heads
    cut = kernel.at[head.head * width : (head.head + 1) * width].set(0)
    attention = attention | {"output": attention["output"] | {"kernel": cut}}
    return params | {head.stack: blocks | {head.layer: block | {head.use: attention}}}


def changes_without(
    translator: Translator, params: Params, sentences: Sequence[Sentence], set_name: str
) -> Iterator[tuple[Head, Estimate]]:
    """How much BLEU changes without each head, one at a time, with the interval for this model and other sentences."""
    groups = group_sentences(sentences, set_name)

    def effects(params: Params) -> Effects:
        found = translator.translate([params], [each.source for each in sentences])
        translated = [replace(each, translation=new.text) for each, new in zip(sentences, found, strict=True)]
        return Effects.of([statistics_of(BLEU(), translated)], groups)

    whole = effects(params)
    config = translator.models[0]
    for head in heads_of(config):
        yield head, of_system(effects(without_head(params, head, config.num_heads)) - whole, pool([]))
