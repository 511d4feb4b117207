// SPDX-License-Identifier: Apache-2.0

//! C programs against the header and the library, built with the machine's C compiler.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the library that Cargo has built, beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_path_buf()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Builds an example and runs it; returns its output.
fn run(name: &str, arguments: &[&str]) -> String {
    run_source(
        &folder().join(format!("examples/{name}.c")),
        name,
        arguments,
    )
}

fn run_source(source: &Path, name: &str, arguments: &[&str]) -> String {
    let program = library().join(format!("nearside_pm_{name}"));
    let built = Command::new("cc")
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-O1",
        ])
        .arg("-I")
        .arg(folder().join("include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(library())
        .arg("-lnearside_pm")
        .arg(format!("-Wl,-rpath,{}", library().display()))
        .output()
        .expect("a C compiler, `cc`");
    assert!(built.status.success(), "{}", said(&built));
    let ran = Command::new(&program).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{}", said(&ran));
    said(&ran)
}

#[test]
#[ignore = "takes seconds"]
fn c_program_keeps_committed_data_after_power_loss() {
    // Fewest devices that take part in a transaction; with synchronisation by the host it waits
    // longer.
    let cases = [
        (&[][..], 0),
        (&["offload"], 1),
        (&["offload", "2"], 2),
        (&["offload", "2", "host"], 2),
        (&["offload", "4"], 2),
        (&["no", "2"], 0),
    ];
    let mut took = Vec::new();
    for (arguments, commits) in cases {
        let text = run("phones", arguments);
        println!("{arguments:?}: {text}");
        assert!(
            text.contains("recovered: 10 entries of 10 committed"),
            "{text}"
        );
        assert!(text.contains("20 losses of power: all whole"), "{text}");
        let number = |what: &str| {
            let before = text.split(what).next().unwrap();
            let last = before.rsplit(' ').next().unwrap();
            last.parse::<u64>().unwrap()
        };
        let commands = number(" commands");
        // A command may make several records.
        match commits {
            0 => assert_eq!(commands, 0, "{text}"),
            1 => assert!((2..=number(" records") + 1).contains(&commands), "{text}"),
            _ => assert!(commands > commits, "{text}"),
        }
        took.push(number(" ns simulated"));
    }
    assert!(took[3] > took[2], "{took:?}");
}

/// The guide shows the output of the program, in C and in Rust; `tests/test_pm.py` runs it in
/// Python.
#[test]
fn guide_program_prints_what_the_guide_shows() {
    let root = folder().join("../..");
    let guide = std::fs::read_to_string(root.join("docs/crash-consistency.md")).unwrap();
    let rust = library().parent().unwrap().join("examples/transfer");
    for arguments in [&[][..], &["offload"]] {
        let c = run_source(&root.join("examples/transfer.c"), "transfer", arguments);
        let ran = Command::new(&rust).args(arguments).output().unwrap();
        assert_eq!(said(&ran), c);
        assert!(guide.contains(&format!("```\n{c}```")), "{c}");
    }
}

/// Of each mechanism, by the CPU and by the engine.
#[test]
fn later_commits_call_back_when_they_are_durable() {
    for mechanism in ["0", "1", "2", "3"] {
        for executor in ["cpu", "offload"] {
            let text = run("later", &[executor, mechanism]);
            let wanted = "durable: 8 of 11, answered: 8\nanswered after a wait: 11\n\
                          ticket 13: allowed are tickets of this thread, up to 12\n\
                          recovered: at least 12 of 13\n";
            assert_eq!(text, wanted, "{executor}, {mechanism}");
        }
    }
}

#[test]
fn nearpm_names_issue_their_commands() {
    let text = run("engine", &[]);
    assert_eq!(text.matches(": yes").count(), 8, "{text}");
}

/// The header declares exactly the functions of the library.
#[test]
fn header_declares_all_exported_functions() {
    let header = std::fs::read_to_string(folder().join("include/nearside_pm.h")).unwrap();
    let mut sources = String::new();
    for file in ["lib.rs", "nearpm.rs"] {
        sources += &std::fs::read_to_string(folder().join("src").join(file)).unwrap();
    }
    let name = |text: &str| text.split('(').next().unwrap_or_default().to_string();
    let mut declared: Vec<String> = header
        .lines()
        .filter_map(|line| {
            line.strip_prefix("int ")
                .or(line.strip_prefix("const char *"))
        })
        .filter(|line| line.contains('('))
        .map(name)
        .collect();
    let mut defined: Vec<String> = sources
        .lines()
        .filter(|line| line.contains("extern \"C\" fn "))
        .filter_map(|line| Some(name(line.split(" fn ").nth(1)?)))
        .collect();
    declared.sort();
    defined.sort();
    assert_eq!(declared, defined);
    assert!(defined.len() > 30, "{defined:?}");
}
