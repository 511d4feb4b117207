# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the NVMe data path."""

import pytest
from hdl import simulate

SOURCES = {"filelists": ["hw/ip/nvme_ctrl/nvme_data.f"], "extra_sources": ["nvme_data_tb.sv"]}
QUICK = (
    "basic_copies,every_alignment,granule_edges,admin_buffer,second_page_offset,error_bytes,"
    "done_not_accepted,directions_are_independent,mover_filled_by_blocks"
)
LONG = "random_mix,list_positions,largest_transfers,errors,throughput,round_trip"


SLOW_MEDIA = {"MediaReadBeats": 2048, "MediaReads": 64, "MediaWriteBytes": 4096, "MediaWrites": 512}


def run(testcase, channels=2, granule=4096, module="cocotb_data", **sizes):
    simulate(
        "nvme_data_tb",
        module,
        parameters={"NumChannels": channels, "Granule": granule} | sizes,
        env={"GRANULE": str(granule)},
        testcase=testcase,
        **SOURCES,
    )


def test_data_quick():
    run(QUICK)


@pytest.mark.slow
def test_data_ops():
    """Zeros, verification, comparison, deallocation; some are ended early."""
    run(None, module="cocotb_data_ops")


@pytest.mark.slow
def test_data_sgl():
    """SGLs."""
    run(None, module="cocotb_data_sgl")


@pytest.mark.slow
def test_data_atomic_quick():
    """Blocks that fail, are split, block a fill or are hot; bursts interrupted by quiesce_i."""
    run(
        "atomic_failing_writes,atomic_every_cut,atomic_failed_reads,quiesce_at_any_time,"
        "atomic_fills_and_pieces,fill_waits_for_host,hot_granule,hot_everything",
        module="cocotb_data_atomic",
    )


@pytest.mark.long
def test_data_slow_media():
    """The sizes for slow media."""
    run("basic_copies,every_alignment,granule_edges,random_mix,errors,deep_writes,deep_reads", **SLOW_MEDIA)
    run(
        "atomic_racing_writes,atomic_racing_everything,atomic_failing_writes,quiesce_at_any_time,hot_everything",
        module="cocotb_data_atomic",
        **SLOW_MEDIA,
    )


@pytest.mark.long
def test_data_atomic():
    """Commands that race for a block."""
    run("atomic_racing_writes,atomic_racing_everything,atomic_racing_fills", module="cocotb_data_atomic")


@pytest.mark.long
def test_data():
    run(LONG)


@pytest.mark.long
@pytest.mark.parametrize(("channels", "granule"), [(1, 4096), (4, 16384)])
def test_data_shapes(channels, granule):
    run("random_mix,admin_buffer,errors,largest_transfers", channels, granule)
    run("ops_all_at_once,compares_and_reads,deallocates", channels, granule, module="cocotb_data_ops")
    run("sgl_mix", channels, granule, module="cocotb_data_sgl")
