// SPDX-License-Identifier: Apache-2.0

//! Building and loading, on the fixture device.

mod common;

use std::path::{Path, PathBuf};

use rtl::bitstream::{
    compile, compile_trained, Bitstream, BitstreamSpec, PortDirection, Purpose, VerilatedModel,
};
use rtl::{DeviceConfig, Error, InitialValues, TrainingError};
use sim::{Fault, Output};

const ONE: u64 = 1;

/// Resets a model; returns the time when it is done.
fn reset(model: &mut VerilatedModel) -> u64 {
    let rst = model.field("rst_ni").unwrap();
    for (cycle, level) in [(0, 0), (1, 0), (2, 1)] {
        model.set(rst, level);
        model.clock(false, cycle * 4000).unwrap();
        model.clock(true, cycle * 4000 + 2000).unwrap();
    }
    12_000
}

/// Writes one word over AXI-Lite; returns the time when it is done.
fn store(model: &mut VerilatedModel, mut now: u64, addr: u64, data: u64) -> Result<u64, Fault> {
    let field = |name: &str| format!("s_axil_{name}");
    for (name, value) in [
        ("awaddr", addr),
        ("wdata", data),
        ("wstrb", 15),
        ("awvalid", ONE),
        ("wvalid", ONE),
    ] {
        let f = model.field(&field(name)).unwrap();
        model.set(f, value);
    }
    let ready = model.field("s_axil_awready").unwrap();
    for _ in 0..20 {
        let taken = model.is(ready);
        model.clock(false, now)?;
        model.clock(true, now + 2000)?;
        now += 4000;
        if taken {
            for name in ["awvalid", "wvalid"] {
                let f = model.field(&field(name)).unwrap();
                model.set(f, 0);
            }
            let bready = model.field("s_axil_bready").unwrap();
            model.set(bready, 1);
            for _ in 0..3 {
                model.clock(false, now)?;
                model.clock(true, now + 2000)?;
                now += 4000;
            }
            return Ok(now);
        }
    }
    Err(Fault::Hang("no answer".into()))
}

#[test]
fn bitstream_second_build_reuses_the_first() {
    let spec = common::fixture_spec(false);
    let first = compile(&spec, &mut |_| true).unwrap();
    let mut steps = Vec::new();
    let second = compile(&spec, &mut |p| {
        steps.push(p);
        true
    })
    .unwrap();
    assert_eq!(first, second);
    assert!(steps.is_empty(), "{steps:?}");
    let traced = common::fixture_spec(true);
    assert_ne!(compile(&traced, &mut |_| true).unwrap(), first);
}

#[test]
fn bitstream_concurrent_builds_make_one_object() {
    let mut spec = common::fixture_spec(false);
    // Content that was never built.
    spec.options = vec![format!("+define+NS_TEST_{}", std::process::id())];
    let paths: Vec<PathBuf> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| compile(&spec, &mut |_| true).unwrap()))
            .collect();
        handles.into_iter().map(|h| h.join().unwrap()).collect()
    });
    assert_eq!(paths[0], paths[1]);
    Bitstream::open(&paths[0]).unwrap();
    std::fs::remove_dir_all(paths[0].parent().unwrap()).unwrap();
}

/// Reads one word over AXI-Lite; returns it and the time when it is done.
fn load(model: &mut VerilatedModel, mut now: u64, addr: u64) -> (u64, u64) {
    for (name, value) in [("araddr", addr), ("arvalid", 1), ("rready", 1)] {
        let field = model.field(&format!("s_axil_{name}")).unwrap();
        model.set(field, value);
    }
    let field = |model: &VerilatedModel, name: &str| model.field(name).unwrap();
    let (asks, data) = (field(model, "s_axil_arvalid"), field(model, "s_axil_rdata"));
    let (takes, answers) = (
        field(model, "s_axil_arready"),
        field(model, "s_axil_rvalid"),
    );
    for _ in 0..20 {
        let (taken, answered) = (model.is(takes), model.is(answers));
        let word = model.get(data);
        model.clock(false, now).unwrap();
        model.clock(true, now + 2000).unwrap();
        now += 4000;
        if answered {
            return (word, now);
        }
        if taken {
            model.set(asks, 0);
        }
    }
    panic!("no answer");
}

#[test]
fn bitstream_initial_values_are_those_chosen() {
    let bitstream = common::load(&common::fixture_spec(false));
    let words = |contents| {
        let mut model = VerilatedModel::with_initial_values(&bitstream, contents).unwrap();
        for port in model.ports().to_vec() {
            let mut data = vec![0; port.bits.div_ceil(8) as usize];
            model.read(model.field(&port.name).unwrap(), &mut data);
            let driven = port.dir == PortDirection::Output || data.iter().all(|byte| *byte == 0);
            assert!(driven, "{contents:?}: input {} is {data:x?}", port.name);
        }
        let mut now = reset(&mut model);
        let mut words = Vec::new();
        // A memory, and a register without a reset.
        for addr in (0..16).map(|n| 4 * n).chain([0x10_0004]) {
            let word;
            (word, now) = load(&mut model, now, addr);
            words.push(word);
        }
        words
    };
    assert_eq!(words(InitialValues::Zeros), [0; 17]);
    assert_eq!(words(InitialValues::Ones), [0xFFFF_FFFF; 17]);
    let random = words(InitialValues::Random(7));
    let different: std::collections::HashSet<&u64> = random.iter().collect();
    assert_eq!(different.len(), 17, "{random:x?}");
    let bits = random.iter().map(|word| word.count_ones()).sum::<u32>();
    assert!((200..350).contains(&bits), "{bits} of 544");
    assert_eq!(random, words(InitialValues::Random(7)));
    assert!(random
        .iter()
        .zip(words(InitialValues::Random(8)))
        .all(|(a, b)| *a != b));
}

#[test]
fn bitstream_ports_and_fields() {
    let bitstream = common::load(&common::fixture_spec(false));
    let mut model = VerilatedModel::new(&bitstream).unwrap();
    let idle = model.ports().iter().find(|p| p.name == "idle_o").unwrap();
    assert_eq!((idle.bits, idle.dir), (1, PortDirection::Output));
    let wdata = model
        .ports()
        .iter()
        .find(|p| p.name == "s_axi_pm_wdata")
        .unwrap();
    assert_eq!((wdata.bits, wdata.dir), (512, PortDirection::Input));
    assert!(matches!(model.field("nonsense"), Err(Error::Port(_))));
    assert!(matches!(
        model.lane("s_axi_pm_wdata", 0, 3),
        Err(Error::Port(_))
    ));

    // Every split of a wide port: neighbours are untouched, values come back.
    let whole = model.field("s_axi_pm_wdata").unwrap();
    for lanes in [8u32, 16, 64, 128, 512] {
        let fields: Vec<_> = (0..lanes)
            .map(|l| model.lane("s_axi_pm_wdata", l, lanes).unwrap())
            .collect();
        let value = |lane: u64| {
            lane.wrapping_mul(0x9E37_79B9_7F4A_7C15) & (u64::MAX >> (64 - (512 / lanes).min(64)))
        };
        model.write(whole, &[0xFF; 64]);
        for (lane, field) in fields.iter().enumerate() {
            model.set(*field, value(lane as u64));
        }
        for (lane, field) in fields.iter().enumerate() {
            assert_eq!(model.get(*field), value(lane as u64), "{lanes} lanes");
        }
    }
    let bytes: Vec<u8> = (0..64).collect();
    model.write(whole, &bytes);
    let mut back = [0; 64];
    model.read(whole, &mut back);
    assert_eq!(&back[..], &bytes[..]);
    // Lanes that straddle words: 24 bits are read at bit 48 of a 64-bit word.
    let id = model.field("s_axi_pm_awid").unwrap();
    model.set(id, 0xFF);
    assert_eq!(model.get(id), 0xF);
}

#[test]
fn bitstream_with_free_clocks_has_no_gates() {
    for free_clocks in [false, true] {
        let device = DeviceConfig {
            free_clocks,
            ..DeviceConfig::new().unwrap()
        };
        let spec = BitstreamSpec {
            top: "ns_clock_gate".to_string(),
            filelists: vec![PathBuf::from("hw/lib/lib.f")],
            ..device.bitstream()
        };
        let mut model = VerilatedModel::new(&common::load(&spec)).unwrap();
        let out = model.field("clk_o").unwrap();
        for cycle in 0..3 {
            model.clock(false, cycle * 4000).unwrap();
            model.clock(true, cycle * 4000 + 2000).unwrap();
            assert_eq!(model.is(out), free_clocks, "`en_i` is 0");
        }
    }
}

#[test]
fn bitstream_instances_share_nothing() {
    let bitstream = common::load(&common::fixture_spec(false));
    let mut models: Vec<VerilatedModel> = (0..2)
        .map(|_| VerilatedModel::new(&bitstream).unwrap())
        .collect();
    let times: Vec<u64> = models.iter_mut().map(reset).collect();
    store(&mut models[0], times[0], 0x10_0018, 0x1111_0000).unwrap();
    store(&mut models[1], times[1], 0x10_0018, 0x2222_0000).unwrap();
    let addr = models[0].field("m_axi_host_awaddr").unwrap();
    assert_eq!(
        (models[0].get(addr), models[1].get(addr)),
        (0x1111_0000, 0x2222_0000)
    );
}

#[test]
fn bitstream_failed_assertion_is_a_message() {
    let bitstream = common::load(&common::fixture_spec(false));
    let mut model = VerilatedModel::new(&bitstream).unwrap();
    let mut other = VerilatedModel::new(&bitstream).unwrap();
    let now = reset(&mut model);
    let error = store(&mut model, now, 0x10_0008, 4)
        .unwrap_err()
        .to_string();
    assert!(error.contains("fail_requested"), "{error}");
    assert!(error.contains("rtl_fixture.sv"), "{error}");
    assert!(
        model.clock(false, now).is_err(),
        "a failed model stays failed"
    );
    let now = reset(&mut other);
    store(&mut other, now, 0x10_0008, 0).unwrap();
}

#[test]
fn bitstream_running_build_has_no_assertions() {
    let bitstream = common::load(&BitstreamSpec {
        purpose: Purpose::Running,
        ..common::fixture_spec(false)
    });
    let mut model = VerilatedModel::new(&bitstream).unwrap();
    let now = reset(&mut model);
    store(&mut model, now, 0x10_0008, 4).unwrap();
}

#[test]
fn waveforms() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = dir.join("bitstream.fst");
    let _ = std::fs::remove_file(&path);
    let mut plain = VerilatedModel::new(&common::load(&common::fixture_spec(false))).unwrap();
    assert!(plain.trace_open(Output::open(&path).unwrap()).is_err());
    let mut model = VerilatedModel::new(&common::load(&common::fixture_spec(true))).unwrap();
    model.trace_open(Output::open(&path).unwrap()).unwrap();
    reset(&mut model);
    model.trace_close().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > 500);
}

#[test]
fn waveform_without_disk_space_is_an_error_and_the_model_continues() {
    let full = || Output::open(Path::new("/dev/full")).unwrap();
    let mut model = VerilatedModel::new(&common::load(&common::fixture_spec(true))).unwrap();
    model.trace_open(full()).unwrap();
    let now = reset(&mut model);
    let error = model.trace_close().unwrap_err().to_string();
    assert!(
        error.contains("/dev/full") && error.contains("in full"),
        "{error}"
    );
    store(&mut model, now, 0x10_0008, 0).unwrap();
    // A model that is dropped with its waveform open reports the error on standard error.
    let mut model = VerilatedModel::new(&common::load(&common::fixture_spec(true))).unwrap();
    model.trace_open(full()).unwrap();
    reset(&mut model);
}

#[test]
fn bitstream_bad_input_is_reported_in_one_line() {
    let one_line = |error: Error, wanted: &str| {
        let text = error.to_string();
        assert!(text.contains(wanted) && text.lines().count() == 1, "{text}");
    };
    let mut spec = common::fixture_spec(false);
    spec.filelists.push(PathBuf::from("hw/top/none.f"));
    one_line(compile(&spec, &mut |_| true).unwrap_err(), "hw/top/none.f");

    let mut spec = common::fixture_spec(false);
    spec.top = "no_such_top".to_string();
    one_line(compile(&spec, &mut |_| true).unwrap_err(), "no_such_top");

    one_line(
        Bitstream::open(Path::new("/nonexistent.so")).err().unwrap(),
        "/nonexistent.so",
    );
}

#[test]
#[ignore = "takes seconds"]
fn bitstream_failed_training_fails_the_build() {
    // Content that no other test builds, so that no trained build of it is found.
    let spec = BitstreamSpec {
        options: vec!["+define+NS_TEST_OF_FAILED_TRAINING".to_string()],
        ..common::fixture_spec(false)
    };
    let train = |outcome: Result<(), &str>| {
        let mut training = |_: &Path| outcome.map_err(TrainingError::from);
        compile_trained(&spec, &mut training, &mut |_| true)
            .unwrap_err()
            .to_string()
    };
    let error = train(Err("the device hangs:\n  a dump"));
    assert!(
        error.contains("the device hangs:") && error.lines().count() == 1,
        "{error}"
    );
    // The model never ran, so it counted nothing.
    assert!(train(Ok(())).contains("no counts"));
    let plain = compile(&spec, &mut |_| true).unwrap();
    assert!(plain.ends_with("rtl_fixture.so"), "{plain:?}");
}

#[test]
#[ignore = "takes seconds"]
fn bitstream_trained_build_is_a_separate_object() {
    let spec = BitstreamSpec {
        purpose: Purpose::Running,
        ..common::fixture_spec(false)
    };
    let mut runs = 0;
    let mut training = |path: &Path| {
        runs += 1;
        let bitstream = Bitstream::open(path)?;
        let mut model = VerilatedModel::new(&bitstream)?;
        let now = reset(&mut model);
        store(&mut model, now, 0x10_0018, 1)?;
        Ok(())
    };
    let mut steps = Vec::new();
    let trained = compile_trained(&spec, &mut training, &mut |step| {
        steps.push(step);
        true
    })
    .unwrap();
    assert!(trained.ends_with("rtl_fixture.trained.so"), "{trained:?}");
    assert_eq!(compile(&spec, &mut |_| true).unwrap(), trained);
    assert_eq!(
        runs,
        usize::from(!steps.is_empty()),
        "training belongs to a build"
    );
    let bitstream = Bitstream::open(&trained).unwrap();
    assert_eq!(bitstream.build(), "running, trained");
    let mut model = VerilatedModel::new(&bitstream).unwrap();
    let now = reset(&mut model);
    store(&mut model, now, 0x10_0018, 0x1234_0000).unwrap();
    let addr = model.field("m_axi_host_awaddr").unwrap();
    assert_eq!(model.get(addr), 0x1234_0000);
    assert_eq!(
        compile_trained(&spec, &mut |_| Err("not again".into()), &mut |_| true).unwrap(),
        trained
    );
}
