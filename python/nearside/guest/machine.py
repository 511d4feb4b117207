# SPDX-License-Identifier: Apache-2.0
"""A guest under QEMU, beside the devices that this process serves."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nearside import files
from nearside._native import NearsideError, guest_cpu
from nearside.guest.clock import build_clock
from nearside.guest.kit import KERNEL_LINE, QEMU_VERSION
from nearside.serve import COMMAND_TIMEOUT_S, MESSAGE_TIMEOUT_MS, kernel_timeouts
from nearside.types import GuestCpu

SIMULATED, WALL = "simulated", "wall"
# The kernel needs no calibration: its counter is in ns.
TIME_LINE = "tsc_early_khz=1000000 lpj=1000000 no_timer_check"
PR_SET_PDEATHSIG = 1
# The loader of this machine, for another QEMU than the kit's.
LOADER = Path("/lib64/ld-linux-x86-64.so.2")


@dataclass(frozen=True)
class CpuModel:
    """What the guest's CPU costs in simulated time."""

    host: str
    """The host profile that it comes from."""
    insn_ps: int
    """The time of an instruction, in ps."""
    tsc_ps: int
    """The additional time of a read of the time stamp counter, in ps."""

    @staticmethod
    def load(host: str = "kernel", insn_ps: int | None = None) -> CpuModel:
        """Reads a host profile by name or path; `insn_ps` is used in place of its time of an instruction."""
        instruction, counter = guest_cpu(host)
        return CpuModel(host, insn_ps or instruction, counter)

    def document(self) -> GuestCpu:
        """The model as a document."""
        return {"host": self.host, "instruction_ns": self.insn_ps / 1e3, "counter_ns": self.tsc_ps / 1e3}


@dataclass(frozen=True)
class Guest:
    """A guest to boot."""

    kit: Path
    """The folder of the kit."""
    folder: Path
    """A folder for sockets and serial ports."""
    sockets: Sequence[Path]
    """The sockets of its devices."""
    clock: Path | None
    """The socket of the channel for time; None: wall-clock time."""
    memory_mib: int = 512
    """Its memory, in MiB."""
    cpu: CpuModel | None = None
    """Its kind of CPU; None in wall-clock time."""
    dilation: float | None = None
    """How many times slower than modelled its devices are, if they are paced."""
    cpus: int = 1
    """The number of its CPUs, 1 to 8."""
    qemu: Path | None = None
    """Another QEMU than the kit's, of any version."""
    quantum_ps: int = 1_000_000
    """How far a CPU runs in simulated time while others wait for their turn, in ps."""
    kernel_line: str = ""
    """More words for its kernel's command line."""
    jitter: int = 0
    """Not 0: a seed of waits within QEMU, for tests. They must not change any result."""

    def serial(self, number: int) -> Path:
        """The file with the output of a serial port, from 0 on."""
        return self.folder / f"serial{number}"

    @property
    def results(self) -> Path:
        """The file of the fast port, to which the job's files go."""
        return self.folder / "results"

    @property
    def control(self) -> Path:
        """The pipe to the third serial port."""
        return self.folder / "control"

    def _preloadable(self, clock: Path) -> Path:
        """A path of an object without the separators of ld.so's list."""
        if not set(str(clock)) & set(" :"):
            return clock
        link = self.folder / "clock.so"
        if set(str(link)) & set(" :"):
            raise NearsideError(
                f"{files.printable(self.folder)}: simulated time needs a folder whose path has no space and no colon: "
                "TMPDIR"
            )
        link.unlink(missing_ok=True)
        link.symlink_to(clock.resolve())
        return link

    def command(self, initrd: str | Path, interactive: bool = False) -> list[str]:
        """QEMU's command line. With `interactive` the terminal of this process is the first serial port."""
        kit = self.kit
        if set(str(kit)) & set(":;"):
            raise NearsideError(f"{files.printable(kit)}: QEMU needs a folder whose path has no colon and no semicolon")
        words: list[str | Path] = [kit / "lib/ld-linux-x86-64.so.2", "--library-path", kit / "lib"]
        if self.qemu is not None:
            words = [LOADER]
        machine, plugin, time_line = "q35", [], ""
        if self.clock is not None and self.cpu is not None:
            clock = build_clock(kit.parent)
            words += ["--preload", self._preloadable(clock)]
            cost = [f"insn_ps={self.cpu.insn_ps}", f"tsc_ps={self.cpu.tsc_ps}"]
            version = QEMU_VERSION if self.qemu is None else "any"
            parts = [clock, f"channel={self.clock}", f"qemu={version}", *cost, f"quantum_ps={self.quantum_ps}"]
            parts += [f"interactive={int(interactive)}", f"jitter={self.jitter}"]
            plugin = ["-plugin", ",".join(map(_escaped, parts))]
            # The HPET's timers are 10 ns apart.
            machine, time_line = "q35,hpet=off", TIME_LINE
        elif self.dilation is not None:
            time_line = kernel_timeouts(COMMAND_TIMEOUT_S["rtl"], self.dilation)
        words += [self.qemu or kit / "qemu-system-x86_64"]
        words += ["-L", kit / "fw", "-nodefaults", "-no-user-config", "-no-reboot"]
        words += ["-display", "none", *([] if interactive else ["-monitor", "none"])]
        words += ["-machine", f"{machine},memory-backend=m0,aux-ram-share=on"]
        # From one seed, RDRAND and thus a run are the same twice. Without RDRAND the first program
        # that asks for random numbers waits for a second in which the kernel gathers some.
        words += ["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(self.cpus), "-seed", "1"]
        words += ["-rtc", "base=2026-01-01,clock=vm", *plugin, "-m", f"{self.memory_mib}M"]
        words += ["-object", f"memory-backend-memfd,id=m0,size={self.memory_mib}M,share=on"]
        kernel = kit / "vmlinux" if (kit / "vmlinux").is_file() else kit / "vmlinuz"
        words += ["-kernel", kernel, "-initrd", initrd]
        words += ["-append", " ".join(filter(None, (KERNEL_LINE, time_line, self.kernel_line)))]
        for socket in self.sockets:
            device = {
                "driver": "vfio-user-pci",
                "socket": {"type": "unix", "path": str(socket)},
                "x-msg-timeout": MESSAGE_TIMEOUT_MS,
            }
            if self.clock is not None:
                # The CPU waits for each access, so that the device has it at its time.
                device["x-no-posted-writes"] = True
            words += ["-device", json.dumps(device, separators=(",", ":"))]
        words += ["-serial", "mon:stdio" if interactive else f"file:{self.serial(0)}"]
        words += ["-serial", f"file:{self.serial(1)}"]
        source = f",input-path={_escaped(self.control)}" if self.control.exists() else ""
        words += ["-chardev", f"file,id=report,path={_escaped(self.serial(2))}{source}", "-serial", "chardev:report"]
        # Without an event file its requests are handled by the CPU's thread, at once. It takes no
        # address from the devices: neither their slots nor those of their windows.
        words += ["-device", "virtio-serial-pci,ioeventfd=off,max_ports=2,disable-modern=on,addr=0x1e"]
        words += [
            "-chardev",
            f"file,id=results,path={_escaped(self.results)}",
            "-device",
            "virtserialport,chardev=results,nr=1",
        ]
        return [str(word) for word in words]


def _escaped(value: object) -> str:
    """A value in an option of QEMU, whose parts end with commas."""
    return str(value).replace(",", ",,")


def start(
    command: Sequence[str], errors: Path, interactive: bool = False, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Starts QEMU, which gets the files `pass_fds`. It ends with this process."""
    libc = ctypes.CDLL(None, use_errno=True)

    def end_with_parent() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    try:
        with open(errors, "wb") as output:
            return subprocess.Popen(
                command,
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=None if interactive else subprocess.DEVNULL,
                stderr=output,
                preexec_fn=end_with_parent,
                pass_fds=pass_fds,
                # Ctrl-C is for this process, which ends QEMU.
                start_new_session=not interactive,
            )
    except OSError as error:
        raise NearsideError(f"QEMU can't be started: {error.strerror}") from None
