"""Records a trace with JAX's own profiler on a CPU: ``python bench/record_jax.py FOLDER`` (jax 0.10)."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp


def _loss(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


@jax.jit
def step(w: jax.Array, x: jax.Array) -> jax.Array:
    """One step of gradient descent."""
    return w - 0.1 * jax.grad(_loss)(w, x)


if __name__ == "__main__":
    weights, inputs = jnp.ones((64, 64)), jnp.ones((16, 64))
    step(weights, inputs).block_until_ready()
    with jax.profiler.trace(sys.argv[1]):
        for number in range(3):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                weights = step(weights, inputs)
                weights.block_until_ready()
