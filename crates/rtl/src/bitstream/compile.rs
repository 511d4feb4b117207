// SPDX-License-Identifier: Apache-2.0

//! Compiles a design into a bitstream, once for each content.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{kill_process_group, Pid, Signal};
use sha2::{Digest, Sha256};

use super::find::{find_verilator, on_path, version_of};
use super::FileList;
use crate::error::{Error, Result, TrainingError};

const SHIM: &str = include_str!("shim.cpp");
/// Included before the sources of the Verilated runtime.
const RUNTIME: &str = include_str!("runtime.h");

/// Flags that decide what the model does and how fast it is; part of the hash.
///
/// A register without an initial value holds what the shim chooses (`unique`). That costs time only
/// when a model is made.
const VERILATOR_FLAGS: &[&str] = &[
    "--cc",
    "--prefix",
    "Vdut",
    "-Wall",
    "--x-assign",
    "fast",
    "--x-initial",
    "unique",
    "--timescale",
    "1ps/1ps",
    "--output-split-cfuncs",
    "1000",
    "--output-groups",
    "2",
    "--no-timing",
];
/// Most of a compiler's run is the headers. Two large files, one for each core, compile in a third
/// of the time of forty, and sooner than their precompiled header would. So the files that run
/// often are two, written by Verilator. The files that run once become one file, and Verilator's
/// library another.
const JOINED: [(&str, &[&str]); 2] = [
    ("ns_slow", &["VM_CLASSES_SLOW", "VM_SUPPORT_SLOW"]),
    ("ns_library", &["VM_GLOBAL_FAST"]),
];
const WITHOUT_PRECOMPILED_HEADER: [&str; 6] = [
    "-o",
    "Vdut__pch.h.fast.gch",
    "-o",
    "Vdut__pch.h.slow.gch",
    "VK_PCH_I_FAST=-include Vdut__pch.h",
    "VK_PCH_I_SLOW=-include Vdut__pch.h",
];
const CXX_FLAGS: &str =
    "-fPIC -fvisibility=hidden -DVL_USER_STOP -DVL_USER_FINISH -DVL_USER_FATAL \
    -DVL_SCOPED_RAND_RESET_I=ns_initial_i -DVL_SCOPED_RAND_RESET_Q=ns_initial_q \
    -DVL_SCOPED_RAND_RESET_W=ns_initial_w";
/// 5 % slower than with -O2, and compiled in three quarters of the time. Training makes up for it.
const OPTIMISE: &str = "-O1";
/// The two builds of a trained bitstream.
const COUNT: &str = "-O1 -fprofile-generate -fprofile-update=single";
const USE_COUNTS: &str = "-O2 -fprofile-use -fprofile-partial-training -Wno-missing-profile \
    -Wno-error=coverage-mismatch";
/// Interval of the checks whether a build is to be stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Builds that are kept. Older ones are removed after a day without use.
const KEPT_BUILDS: usize = 24;

/// What a bitstream is for. It computes the same for either purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To find faults: an assertion of the RTL that fails ends the run. The default.
    #[default]
    Checked,
    /// For speed: without assertions, and trained if it was trained ([`compile_trained`]).
    Running,
}

impl Purpose {
    /// Verilator's flag for it, part of the hash.
    fn flag(self) -> &'static str {
        match self {
            Purpose::Checked => "--assert",
            Purpose::Running => "--no-assert",
        }
    }

    /// What is defined for sources and shim. A checked build reports the order in which engines
    /// work (hw/engine/nearpm/rtl/nearpm_order_pkg.sv).
    fn define(self) -> &'static str {
        match self {
            Purpose::Checked => " -DNS_ORDER",
            Purpose::Running => "",
        }
    }

    /// What [`Bitstream::build`](super::Bitstream::build) returns.
    fn name(self, trained: bool) -> &'static str {
        match (self, trained) {
            (Purpose::Checked, false) => "checked",
            (Purpose::Checked, true) => "checked, trained",
            (Purpose::Running, false) => "running",
            (Purpose::Running, true) => "running, trained",
        }
    }
}

/// What to compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitstreamSpec {
    /// The repository root; all other paths are relative to it.
    pub root: PathBuf,
    /// The top module.
    pub top: String,
    /// File lists.
    pub filelists: Vec<PathBuf>,
    /// Further sources.
    pub sources: Vec<PathBuf>,
    /// Sources that are no files: name to text.
    pub generated: BTreeMap<String, String>,
    /// Parameters of the top, as written in SystemVerilog (quotes around strings).
    pub parameters: BTreeMap<String, String>,
    /// With assertions or without.
    pub purpose: Purpose,
    /// Compile waveforms in: about 20 % slower even while none are written.
    pub trace: bool,
    /// Further options for Verilator.
    pub options: Vec<String>,
}

/// How far a build is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another process builds the same content; waiting for it.
    Waiting,
    /// Verilator translates the design to C++.
    Translating,
    /// The C++ compiler works: (files begun, files in all).
    Compiling(usize, usize),
    /// The first build runs, and counts what the model does most.
    Training,
    /// No news. It comes ten times a second, so that a build can be stopped at any time.
    Working,
    /// Built after this many milliseconds.
    Done(u64),
}

/// Reports a build on standard error, one line for each step. Prints nothing if the build exists.
pub fn stderr_progress(top: &str) -> impl FnMut(Progress) -> bool {
    let top = top.to_string();
    let mut shown = 0;
    move |progress| {
        match progress {
            Progress::Working => {}
            Progress::Waiting => eprintln!("{top}: waiting for another build of the same design"),
            Progress::Translating => eprintln!("{top}: translating with Verilator"),
            Progress::Compiling(begun, all) => {
                let tenth = begun * 10 / all.max(1);
                if begun == 1 || tenth > shown {
                    shown = tenth;
                    eprintln!("{top}: compiling {begun} of {all}");
                }
            }
            Progress::Training => {
                shown = 0;
                eprintln!("{top}: running it to find what matters most");
            }
            Progress::Done(ms) => eprintln!("{top}: built in {:.1} s", ms as f64 / 1e3),
        }
        true
    }
}

/// Uses a bitstream in the way that matters, when given its path. An error ends the build, and
/// nothing is kept.
pub type TrainingRun<'a> = &'a mut dyn FnMut(&Path) -> std::result::Result<(), TrainingError>;

/// Reports progress; an error if the build is to stop.
fn report_progress(progress: &mut dyn FnMut(Progress) -> bool, what: Progress) -> Result<()> {
    progress(what).then_some(()).ok_or(Error::Interrupted)
}

/// Compiles `spec`, unless the same content was compiled before. Returns the path of the shared
/// object: the trained one if there is one.
///
/// Any number of processes may do so at once: one builds, the others wait. An interrupted build
/// leaves nothing that a later one would take for a result. `progress` interrupts it by answering
/// false: then every compiler that runs is ended.
pub fn compile(
    spec: &BitstreamSpec,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<PathBuf> {
    build(spec, None, progress)
}

/// Like [`compile`], but compiles twice: once to count what the model does while `training` uses
/// it, and again with these counts. It takes twice as long; the model runs about 15 % faster.
pub fn compile_trained(
    spec: &BitstreamSpec,
    training: TrainingRun<'_>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<PathBuf> {
    build(spec, Some(training), progress)
}

fn build(
    spec: &BitstreamSpec,
    training: Option<TrainingRun<'_>>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<PathBuf> {
    let mut build = BitstreamBuild::new(spec)?;
    let trained = build.output.with_extension("trained.so");
    if training.is_some() || trained.is_file() {
        build.output = trained;
    }
    if build.output.is_file() {
        touch(&build.output);
        return Ok(build.output);
    }
    fs::create_dir_all(&build.folder).map_err(|e| Error::io(&build.folder, e))?;
    let lock_path = build.folder.join("lock");
    let lock = File::create(&lock_path).map_err(|e| Error::io(&lock_path, e))?;
    if rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        report_progress(progress, Progress::Waiting)?;
        while let Err(error) =
            rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        {
            if error != rustix::io::Errno::WOULDBLOCK && error != rustix::io::Errno::INTR {
                return Err(Error::io(&lock_path, error));
            }
            std::thread::sleep(POLL_INTERVAL);
            report_progress(progress, Progress::Working)?;
        }
    }
    if !build.output.is_file() {
        let start = Instant::now();
        build.run(training, progress)?;
        prune(build.folder.parent().unwrap_or(Path::new(".")));
        progress(Progress::Done(start.elapsed().as_millis() as u64));
    }
    Ok(build.output)
}

/// What identifies the hardware of `spec`, 16 hexadecimal digits: sources, parameters, and what
/// they are compiled with.
pub fn digest(spec: &BitstreamSpec) -> Result<String> {
    let build = BitstreamBuild::new(spec)?;
    let name = build.folder.file_name().unwrap_or_default();
    Ok(name.to_string_lossy().into_owned())
}

struct BitstreamBuild<'a> {
    spec: &'a BitstreamSpec,
    files: FileList,
    verilator: PathBuf,
    cxx: String,
    folder: PathBuf,
    output: PathBuf,
}

impl<'a> BitstreamBuild<'a> {
    fn new(spec: &'a BitstreamSpec) -> Result<Self> {
        let mut files = FileList::default();
        for list in &spec.filelists {
            files.add(&spec.root, list)?;
        }
        files.sources.extend(spec.sources.iter().cloned());
        let verilator = find_verilator(&spec.root)?;
        let cxx = std::env::var("CXX").unwrap_or_else(|_| "g++".to_string());
        let mut hash = Sha256::new();
        let version = version_of(&verilator, "Verilator")?;
        for text in [
            version.as_str(),
            &cxx,
            SHIM,
            RUNTIME,
            CXX_FLAGS,
            OPTIMISE,
            spec.purpose.flag(),
            spec.purpose.define(),
            &format!("{VERILATOR_FLAGS:?}"),
        ] {
            hash.update(text);
            hash.update([0]);
        }
        hash.update(format!(
            "{}{:?}{}{:?}",
            spec.top, spec.parameters, spec.trace, spec.options
        ));
        for (name, text) in &spec.generated {
            hash.update(format!("{name}\0{text}\0"));
        }
        for input in files.inputs(&spec.root).iter().chain(&spec.sources) {
            let path = spec.root.join(input);
            hash.update(fs::read(&path).map_err(|e| Error::io(&path, e))?);
            hash.update(format!("\0{}\0", input.display()));
        }
        let digest: String = hash
            .finalize()
            .iter()
            .take(8)
            .map(|b| format!("{b:02x}"))
            .collect();
        let folder = spec.root.join("build/bitstream").join(digest);
        let output = folder.join(format!("{}.so", spec.top));
        Ok(BitstreamBuild {
            spec,
            files,
            verilator,
            cxx,
            folder,
            output,
        })
    }

    fn run(
        &self,
        training: Option<TrainingRun<'_>>,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<()> {
        if on_path(&self.cxx).is_none() {
            return Err(Error::MissingTool {
                tool: "the C++ compiler",
                advice: format!(
                    "`{}` is not on PATH; run: apt-get install -y g++ make",
                    self.cxx
                ),
            });
        }
        if on_path("make").is_none() {
            return Err(Error::MissingTool {
                tool: "make",
                advice: "run: apt-get install -y make".to_string(),
            });
        }
        let obj = self.folder.join("obj");
        if obj.exists() {
            fs::remove_dir_all(&obj).map_err(|e| Error::io(&obj, e))?; // an interrupted build
        }
        fs::create_dir_all(&obj).map_err(|e| Error::io(&obj, e))?;
        report_progress(progress, Progress::Translating)?;
        self.translate(&obj, progress)?;
        write(&obj.join("ns_shim.cpp"), SHIM)?;
        write(&obj.join("ns_ports.inc"), &ports_of(&obj.join("Vdut.h"))?)?;
        write(&obj.join("ns_runtime.h"), RUNTIME)?;
        write(
            &obj.join("ns_symbols.map"),
            "{ global: ns_*; local: *; };\n",
        )?;
        write(&obj.join("ns.mk"), MAKEFILE)?;
        let classes = obj.join("Vdut_classes.mk");
        let classes = fs::read_to_string(&classes).map_err(|e| Error::io(&classes, e))?;
        for (name, lists) in JOINED {
            let sources = lists.iter().flat_map(|list| sources_in(&classes, list));
            let includes: String = sources.map(|s| format!("#include \"{s}.cpp\"\n")).collect();
            write(&obj.join(name).with_extension("cpp"), &includes)?;
        }
        match training {
            None => self.make(&obj, OPTIMISE, "", false, progress)?,
            Some(training) => {
                self.make(&obj, COUNT, "-fprofile-generate", true, progress)?;
                report_progress(progress, Progress::Training)?;
                let fail = |source| Error::Training {
                    top: self.spec.top.clone(),
                    source,
                };
                training(&obj.join("bitstream.so")).map_err(fail)?;
                if files_with(&obj, ".gcda")?.is_empty() {
                    return Err(fail("the run has left no counts".into()));
                }
                for suffix in [".o", ".a", ".gch", ".so"] {
                    remove_files(&obj, suffix)?;
                }
                self.make(&obj, USE_COUNTS, "", true, progress)?;
            }
        }
        fs::rename(obj.join("bitstream.so"), &self.output)
            .map_err(|e| Error::io(&self.output, e))?;
        // The objects are in ccache; the sources that Verilator wrote are not needed any more.
        fs::remove_dir_all(&obj).map_err(|e| Error::io(&obj, e))
    }

    fn translate(&self, obj: &Path, progress: &mut dyn FnMut(Progress) -> bool) -> Result<()> {
        let mut command = Command::new(&self.verilator);
        command.current_dir(&self.spec.root).args(VERILATOR_FLAGS);
        command.arg(self.spec.purpose.flag());
        command.args(self.spec.purpose.define().split_whitespace());
        command
            .arg("--top-module")
            .arg(&self.spec.top)
            .arg("--Mdir")
            .arg(obj);
        if self.spec.trace {
            command.arg("--trace-fst");
        }
        for (name, value) in &self.spec.parameters {
            command.arg(format!("-G{name}={value}"));
        }
        command.args(&self.spec.options);
        command.args(
            self.files
                .incdirs
                .iter()
                .map(|dir| format!("+incdir+{}", dir.display())),
        );
        command.args(&self.files.waivers).args(&self.files.sources);
        for (name, text) in &self.spec.generated {
            let path = obj.join(name);
            write(&path, text)?;
            command.arg(path);
        }
        let log = self.folder.join("verilator.log");
        if run_tool(command, &log, &mut |_| progress(Progress::Working))? {
            return Ok(());
        }
        Err(Error::Build {
            step: "Verilator",
            message: first_error(&fs::read_to_string(&log).unwrap_or_default()),
            log,
        })
    }

    fn make(
        &self,
        obj: &Path,
        optimise: &str,
        link: &str,
        trained: bool,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<()> {
        let log_path = self.folder.join("make.log");
        let total = count_units(obj);
        let mut command = Command::new("make");
        // What ccache has of another checkout is valid here, too.
        command.env("CCACHE_BASEDIR", &self.spec.root);
        command
            .args(["-C"])
            .arg(obj)
            .args(["-f", "ns.mk", "-j2", "bitstream.so"])
            .args(WITHOUT_PRECOMPILED_HEADER);
        for (name, lists) in JOINED {
            for (n, list) in lists.iter().enumerate() {
                command.arg(format!("{list}={}", if n == 0 { name } else { "" }));
            }
        }
        command.arg(format!("CXX={}", self.cxx));
        command.arg(format!(
            "NS_FLAGS={CXX_FLAGS}{}{}",
            if self.spec.trace { " -DNS_TRACE" } else { "" },
            self.spec.purpose.define()
        ));
        command
            .arg(format!("OPT_FAST={optimise}"))
            .arg(format!("NS_LINK={link}"));
        let count = if link.is_empty() { "" } else { "-DNS_COUNT" };
        let name = self.spec.purpose.name(trained);
        command.arg(format!("NS_SHIM=-DNS_BUILD='\"{name}\"' {count}"));
        command.arg("OPT_SLOW=-O1");
        command.arg("OPT_GLOBAL=-O2 -include ns_runtime.h");
        let mut begun = 0;
        let built = run_tool(command, &log_path, &mut |line| match line {
            Some(line) if line.contains(" -c ") && line.contains(".cpp") => {
                begun += 1;
                progress(Progress::Compiling(begun, total.max(begun)))
            }
            _ => progress(Progress::Working),
        })?;
        if built {
            return Ok(());
        }
        let text = fs::read_to_string(&log_path).unwrap_or_default();
        Err(Error::Build {
            step: "the C++ compiler",
            message: first_error(&text),
            log: log_path,
        })
    }
}

/// Runs a program to its end, with its output in `log`; true if it succeeds. `keep_going` gets each
/// line of its standard output, and `None` when there was none for a while. If it answers false,
/// the program and all that it has started are ended.
fn run_tool(
    mut command: Command,
    log: &Path,
    keep_going: &mut dyn FnMut(Option<&str>) -> bool,
) -> Result<bool> {
    let mut file = File::create(log).map_err(|e| Error::io(log, e))?;
    let errors = file.try_clone().map_err(|e| Error::io(log, e))?;
    // Ctrl-C in a terminal does not reach this group; `keep_going` decides what it means.
    command.process_group(0).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(errors);
    let mut child = command
        .spawn()
        .map_err(|e| Error::io(Path::new(command.get_program()), e))?;
    let (sender, lines) = mpsc::channel();
    let stdout = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let lines = stdout
            .into_iter()
            .flat_map(|out| BufReader::new(out).lines());
        for line in lines.map_while(std::result::Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let outcome = loop {
        let line = match lines.recv_timeout(POLL_INTERVAL) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(()),
        };
        if let Some(line) = &line {
            if let Err(error) = writeln!(file, "{line}") {
                break Err(Error::io(log, error));
            }
        }
        if !keep_going(line.as_deref()) {
            break Err(Error::Interrupted);
        }
    };
    if outcome.is_err() {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::TERM);
        }
    }
    let status = child.wait().map_err(|e| Error::io(log, e))?;
    let _ = reader.join();
    outcome.map(|()| status.success())
}

/// Links everything into one object that shares no symbol with other bitstreams in the process.
const MAKEFILE: &str = "\
include Vdut.mk
VM_USER_CFLAGS += $(NS_FLAGS)
ns_shim.o: ns_shim.cpp ns_ports.inc
\t$(OBJCACHE) $(CXX) -O2 $(NS_SHIM) $(CXXFLAGS) $(CPPFLAGS) -c -o $@ $<
bitstream.so: ns_shim.o libVdut.a libverilated.a
\t$(CXX) -shared -o $@.tmp ns_shim.o libVdut.a libverilated.a \\
\t\t$(NS_LINK) $(LDFLAGS) $(LDLIBS) $(LIBS) \\
\t\t-Wl,-Bsymbolic -Wl,--version-script=ns_symbols.map
\tmv $@.tmp $@
";

/// The names after `LIST += \` in the makefile that Verilator writes, one on each line.
fn sources_in<'a>(classes: &'a str, list: &str) -> Vec<&'a str> {
    let start = format!("{list} += \\");
    let lines = classes.lines().skip_while(|line| *line != start).skip(1);
    lines
        .map_while(|line| line.strip_suffix('\\'))
        .map(str::trim)
        .collect()
}

/// The ports of the top, from the declarations `VL_IN8(&name,msb,lsb)` and the like in the model's
/// header.
fn ports_of(header: &Path) -> Result<String> {
    let text = fs::read_to_string(header).map_err(|e| Error::io(header, e))?;
    let mut out = String::new();
    for line in text.lines() {
        let line = line.trim();
        let (dir, rest) = if let Some(rest) = line.strip_prefix("VL_IN") {
            (0, rest)
        } else if let Some(rest) = line.strip_prefix("VL_OUT") {
            (1, rest)
        } else {
            continue;
        };
        let Some((_, arguments)) = rest.split_once("(&") else {
            continue;
        };
        let mut parts = arguments.trim_end_matches(");").split(',');
        let name = parts.next().unwrap_or("");
        let mut number = || parts.next().and_then(|n| n.trim().parse::<u32>().ok());
        let (Some(msb), Some(lsb)) = (number(), number()) else {
            return Err(Error::FileList(format!(
                "{}: not understood: {line}",
                header.display()
            )));
        };
        out.push_str(&format!("NS_PORT({name}, {}, {dir})\n", msb - lsb + 1));
    }
    if out.is_empty() {
        return Err(Error::FileList(format!(
            "{}: the top has no ports",
            header.display()
        )));
    }
    Ok(out)
}

fn count_units(obj: &Path) -> usize {
    const RUNTIME: usize = 2; // verilated.cpp, verilated_threads.cpp
    let Ok(entries) = fs::read_dir(obj) else {
        return 0;
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let unit = |name: &str| {
        let grouped = name.contains("_vm_classes_") || name.starts_with("Vdut__Syms");
        name.ends_with(".cpp") && (grouped || name == "ns_shim.cpp")
    };
    let units = names.filter(|name| unit(&name.to_string_lossy())).count();
    units + RUNTIME
}

/// The line that says most about a failure.
fn first_error(log: &str) -> String {
    let line = log
        .lines()
        .find(|line| line.contains("%Error") && !line.contains("Exiting due to"))
        .or_else(|| log.lines().find(|line| line.contains("error:")))
        .or_else(|| log.lines().find(|line| line.contains("%Warning")))
        .or_else(|| log.lines().rev().find(|line| !line.trim().is_empty()));
    line.unwrap_or("no output").trim().to_string()
}

fn files_with(folder: &Path, suffix: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|e| Error::io(folder, e))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths
        .filter(|path| path.to_string_lossy().ends_with(suffix))
        .collect())
}

fn remove_files(folder: &Path, suffix: &str) -> Result<()> {
    files_with(folder, suffix)?
        .iter()
        .try_for_each(|path| fs::remove_file(path).map_err(|e| Error::io(path, e)))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|e| Error::io(path, e))
}

/// Marks a build as used now; only pruning looks at it, so failure does not matter.
fn touch(path: &Path) {
    if let Ok(file) = File::options().append(true).open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Removes builds that were not used for a day, beyond the `KEPT_BUILDS` latest ones.
fn prune(parent: &Path) {
    const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 3600);
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    let last_use = |dir: &Path| {
        let files = fs::read_dir(dir).ok()?.flatten();
        files
            .filter_map(|f| f.metadata().ok()?.modified().ok())
            .max()
    };
    let dirs = entries.flatten().map(|entry| entry.path());
    let mut builds: Vec<(SystemTime, PathBuf)> = dirs
        .filter_map(|dir| Some((last_use(&dir)?, dir)))
        .collect();
    builds.sort();
    let old = |time: &SystemTime| time.elapsed().is_ok_and(|age| age > DAY);
    let surplus = builds.len().saturating_sub(KEPT_BUILDS);
    for (_, dir) in builds.iter().take(surplus).filter(|(time, _)| old(time)) {
        let _ = fs::remove_dir_all(dir);
    }
}
