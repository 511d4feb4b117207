// SPDX-License-Identifier: Apache-2.0

//! The source of the shim, and its exported functions.

use std::path::Path;
use std::process::Command;

/// The warnings of a compiler, as errors.
#[test]
fn shim_compiles_without_warnings() {
    let out = env!("OUT_DIR");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "c") {
            let status = Command::new("cc")
                .args([
                    "-std=gnu11",
                    "-O2",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-Wshadow",
                ])
                .args(["-Wconversion", "-fsyntax-only", "-I", out])
                .arg(&path)
                .status();
            assert!(status.unwrap().success(), "{}", path.display());
        }
    }
}

/// Only functions of interposed libraries are exported, so the shim hides nothing of a program.
#[test]
fn shim_exports_only_functions_of_its_libraries() {
    let shim = Path::new(env!("OUT_DIR")).join("libnearside_pmdk.so");
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(shim)
        .output()
        .expect("who has cc has nm");
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = text.lines().filter_map(|l| l.split(' ').nth(2)).collect();
    assert!(names.contains(&"pmemobj_tx_begin") && names.contains(&"mmap"));
    for name in names {
        let of_libc = [
            "_Exit",
            "_exit",
            "creat",
            "fclose",
            "fdatasync",
            "fflush",
            "fopen",
            "fopen64",
            "fsync",
            "link",
            "linkat",
            "mkdir",
            "mmap",
            "mmap64",
            "mprotect",
            "mremap",
            "msync",
            "munmap",
            "open",
            "open64",
            "openat",
            "openat64",
            "posix_fallocate",
            "posix_fallocate64",
            "pthread_create",
            "pthread_sigmask",
            "pwrite",
            "pwrite64",
            "remove",
            "rename",
            "renameat",
            "rmdir",
            "send",
            "sendmsg",
            "sendto",
            "sigaction",
            "signal",
            "sigprocmask",
            "symlink",
            "unlink",
            "unlinkat",
            "write",
            "writev",
        ];
        let known = ["pmemobj_", "pmem_"].iter().any(|p| name.starts_with(p));
        let known = known || of_libc.contains(&name);
        assert!(known, "{name} is exported");
    }
}
