"""``gpudiag test``: load the hardware on purpose and see whether it does what it should; with consent, on idle GPUs only."""

from __future__ import annotations

import argparse

from assistant.active import options

NAME = "test"
HELP = "active tests with consent: DCGM diagnostic, nvbandwidth, nccl-tests, ib_write_bw, gpu-burn"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Tests, GPUs, level, consent."""
    options.add(parser)


def run(args: argparse.Namespace) -> int:
    """List the tests, or run some."""
    if args.names == [options.LIST]:
        from assistant.active import listing

        return listing.run(args)
    from assistant.active import flow

    return flow.run(args)
