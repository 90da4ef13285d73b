"""JAX's own attention: that it is what runs."""

import jax
import pytest

from tests.attention.oracles import lower


@pytest.mark.parametrize(
    ("kernel", "made_in", "not_made_in"),
    [("xla", "dot_product_attention", "attend_head"), ("definition", "attend_head", "dot_product_attention")],
)
def test_xla_s_products_are_made_in_jax_nn_and_the_definition_s_are_not(kernel, made_in, not_made_in):
    jitted, arguments = lower(kernel, 2, 2, 2, 5, 6, 4, 4)
    program = jax.make_jaxpr(jitted.__wrapped__)(*arguments)
    products = [equation for equation in program.eqns if equation.primitive.name == "dot_general"]
    assert len(products) == 2  # the scores, and the sums of values
    for product in products:
        callers = str(product.source_info.traceback)
        assert f"({made_in})" in callers and f"({not_made_in})" not in callers
