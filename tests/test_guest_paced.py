# SPDX-License-Identifier: Apache-2.0
"""A stock guest on a paced device: nothing is early, however slow or fast this machine is."""

from __future__ import annotations

import json

import pytest
from nearside import Design
from nearside.guest import kit
from nearside.guest.job import Job, Setup, run_job
from nearside.guest.machine import CpuModel
from nearside.guest.report import job_commands, print_report

pytestmark = pytest.mark.slow

READS = 100
DILATION = 20.0
FIO = (
    "fio --name=t --filename=/dev/nvme0n1 --direct=1 --bs=4k --rw=randread --ioengine=psync --size=8m "
    f"--number_ios={READS} --randseed=1 --thread --output-format=json"
)


@pytest.fixture(scope="module", autouse=True)
def _kit():
    try:
        kit.install_kit(quiet=True)
    except kit.NoKit as reason:
        pytest.skip(str(reason))


def run(cpu=None, dilation=None, **options):
    design = Design.load("default").with_values("[media]\nprofile = 'pcm'")
    setup = Setup([design], "fast", cpu, dilation=dilation)
    report = run_job(Job(FIO.split()), setup, timeout_s=900, **options)
    assert report["status"] == 0
    return report


def reads(report):
    [row] = job_commands(report, "Read")
    assert row["count"] >= READS
    return row


def test_guest_on_a_paced_device_measures_at_least_the_modelled_latency(tmp_path, capsys):
    trace = tmp_path / "trace.jsonl"
    report = run(dilation=DILATION, trace=trace)
    commands = [json.loads(line) for line in trace.read_text().splitlines()]
    times = [command["times_ps"].values() for command in commands if command["command"] == "Read"]
    least_ns = min(max(span) - min(span) for span in times) / 1e3
    measured = json.loads(report["output"])["jobs"][0]["read"]["clat_ns"]["min"]
    assert measured >= DILATION * least_ns
    # The device is the one of simulated time. Single reads wait for a refresh of the DRAM.
    assert reads(report)["p50_ns"] == pytest.approx(reads(run(CpuModel.load()))["p50_ns"], rel=0.01)
    pacing = report["devices"][0]["pacing"]
    assert pacing["dilation"] == DILATION
    assert pacing["completions"]["count"] >= READS
    assert pacing["interrupts"]["count"] >= READS
    print_report(report, tmp_path)
    printed = capsys.readouterr().out
    assert "as modelled" in printed
    assert "Divide what the job has measured by 20." in printed
