# SPDX-License-Identifier: Apache-2.0
"""Progress words: what the engine writes to host memory, beside all other work."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb_nearpm import POOLS, Program
from nearpm_bench import Bench
from nearpm_model import ABORT, COMMIT, COMMIT_REDO, DELETE, LOG_OPEN, POOL_UNMAP, SWITCH, UNDO, command

WORDS = 0x3000


class Words:
    """Checks each cycle that no word goes back, and that its transaction has been accepted."""

    def __init__(self, bench):
        self.bench = bench
        self.accepted = {}  # pool, thread: transactions that a word may have
        self.seen = {}
        self.writes = 0

    async def run(self):
        d = self.bench.dut
        while True:
            await RisingEdge(d.clk_i)
            if not (int(d.m_host_bvalid.value) and int(d.m_host_bready.value)):
                continue
            self.writes += 1
            for log, allowed in self.accepted.items():
                word = self.bench.word(WORDS, *log)
                assert word >= self.seen.get(log, 0), (log, word, self.seen[log])
                assert word in allowed or word == 0, (log, word)
                self.seen[log] = word

    def check(self):
        """All words have arrived."""
        for (pool, thread), allowed in self.accepted.items():
            assert self.bench.word(WORDS, pool, thread) == max(allowed, default=0), (pool, thread)


async def random_commits(bench, words, program, count):
    r, newest = bench.random, 0
    for _ in range(count):
        pool = r.choice(POOLS)
        thread = r.randrange(4)
        ids = program.ids(pool, thread)
        newest += r.randrange(1, 1 << 40)
        log = pool["pool"], thread
        for _ in range(r.randrange(3)):
            await bench.store(pool["media"] + 64 * r.randrange(32), r.randbytes(64))
        await program.submit(UNDO, **ids, address=program.object_address(pool, 64), size=64, transaction=newest)
        op = r.choice([COMMIT, COMMIT, DELETE, ABORT, COMMIT_REDO, SWITCH])
        fields = {"target": pool["base"] + 8 * r.randrange(100)} if op == SWITCH else {}
        words.accepted.setdefault(log, []).append(newest)
        result, _ = await program.submit(op, **ids, **fields, transaction=newest)
        assert result == 0
        if op == COMMIT_REDO:
            await program.submit(DELETE, **ids, transaction=newest)


@cocotb.test()
async def words_follow_ended_transactions(dut):
    """A word has a transaction whose commit has ended, and never goes back; at the end each has the last one."""
    bench = Bench(dut)
    await bench.start()
    program, words = Program(bench), Words(bench)
    await program.start()
    cocotb.start_soon(words.run())
    await random_commits(bench, words, program, 30)
    await bench.wait_idle()
    assert words.writes == 0, "no address is set"
    await bench.set_words(WORDS)
    await bench.wait_idle()
    words.check()
    for pause in (0.0, 0.5, 0.95):
        stalls = iter(lambda p=pause: bench.random.random() < p, None)
        bench.host.write_if.aw_channel.set_pause_generator(stalls)
        await random_commits(bench, words, program, 60)
        await bench.wait_idle()
        words.check()
    await program.check_results()
    # Several transactions of a log may share a word.
    assert words.writes > 3 * len(words.accepted)


@cocotb.test()
async def slow_host_holds_nothing_up(dut):
    """The host takes no write: commands end all the same, and one write of each log follows."""
    bench = Bench(dut)
    await bench.start()
    program, words = Program(bench), Words(bench)
    await program.start()
    await bench.set_words(WORDS)
    cocotb.start_soon(words.run())
    bench.host.write_if.aw_channel.pause = True
    await random_commits(bench, words, program, 100)
    for _ in range(100_000):
        if not bench.in_flight and bench.answered == bench.stores:
            break
        await RisingEdge(dut.clk_i)
    assert not bench.in_flight
    assert words.writes == 0
    bench.host.write_if.aw_channel.pause = False
    await bench.wait_idle()
    words.check()
    # The multiplexer and the engine hold a write each that was chosen before.
    assert len(words.accepted) <= words.writes <= len(words.accepted) + 2


@cocotb.test()
async def words_end_with_their_pool(dut):
    """A pool that is unmapped has no further words, and a log that is opened again begins anew."""
    bench = Bench(dut)
    await bench.start()
    pool = POOLS[1]
    ids = Program.ids(pool, 1)

    async def open_and_commit(transaction):
        await bench.map_pool(**pool)
        await bench.run_command(LOG_OPEN, **ids, value=1)
        await bench.run_command(COMMIT, **ids, transaction=transaction)
        await bench.wait_idle()

    await bench.set_words(WORDS)
    await open_and_commit(900)
    assert bench.word(WORDS, 5, 1) == 900
    await bench.run_command(POOL_UNMAP, pool=5, process=900)
    await bench.set_words(WORDS + 0x1000)
    await bench.wait_idle()
    assert bench.word(WORDS + 0x1000, 5, 1) == 0, "its words are gone"
    await open_and_commit(7)
    assert bench.word(WORDS + 0x1000, 5, 1) == 7
    await bench.set_words(0)
    await bench.run_command(COMMIT, **ids, transaction=8)
    await bench.wait_idle()
    assert bench.word(WORDS + 0x1000, 5, 1) == 7, "the words are off"


@cocotb.test()
async def host_errors_do_not_hang(dut):
    """An address without memory: the words are lost, commands end, and a new address has all of them."""
    bench = Bench(dut)
    await bench.start()
    program, words = Program(bench), Words(bench)
    await program.start()
    await bench.set_words(1 << 40)
    await random_commits(bench, words, program, 30)
    await bench.wait_idle()
    await bench.set_words(WORDS)
    await bench.wait_idle()
    words.check()


@cocotb.test()
async def no_word_after_power_failure(dut):
    """Once the power fails no write begins; after the reset there is no address."""
    bench = Bench(dut)
    await bench.start()
    program, words = Program(bench), Words(bench)
    await program.start()
    await bench.set_words(WORDS)
    ids = program.ids(POOLS[0], 0)
    for transaction in range(1, 20):
        await bench.submit(command(COMMIT, **ids, transaction=transaction))
    await bench.stop()
    last = bench.word(WORDS, 0, 0)
    assert last < 19
    await ClockCycles(dut.clk_i, 500)
    assert bench.word(WORDS, 0, 0) == last
    await bench.reset()
    await bench.wait_for(dut.open_o)
    await ClockCycles(dut.clk_i, 500)
    assert bench.word(WORDS, 0, 0) == last
    assert await bench.register(0x210) == 0
    assert not words.writes


class Writes:
    """Notes the addresses of all writes to host memory."""

    def __init__(self, bench):
        self.dut = bench.dut
        self.addresses = []

    async def run(self):
        d = self.dut
        while True:
            await RisingEdge(d.clk_i)
            if int(d.m_host_awvalid.value) and int(d.m_host_awready.value):
                self.addresses.append(int(d.m_host_awaddr.value))


@cocotb.test()
async def no_word_at_address_0(dut):
    """The address is set to 0 while the words of eight logs are written: none is written to address 0."""
    bench = Bench(dut)
    await bench.start()
    program, writes = Program(bench), Writes(bench)
    await program.start()
    cocotb.start_soon(writes.run())
    for pool in POOLS:
        for thread in range(4):
            await bench.run_command(COMMIT, **program.ids(pool, thread), transaction=900)
    for delay in range(40):
        await bench.set_words(WORDS)  # all words are written again
        await bench.write_register(0x210, 0)  # has no effect before the upper half
        await ClockCycles(dut.clk_i, delay)
        await bench.write_register(0x214, 0)
        await bench.wait_idle()
    assert writes.addresses
    wrong = sorted({address for address in writes.addresses if address < WORDS})
    assert not wrong, f"writes to {[hex(address) for address in wrong]}"
