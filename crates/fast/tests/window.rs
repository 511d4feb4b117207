//! Loads and stores of the PM window.

use std::path::Path;

use fast::{Config, FastDevice};
use sim::controller::Memory;
use sim::{Bar, HostConfig, LinkConfig, Media, Random, System, Time};

fn system(values: &str, late: Option<Time>) -> (System, usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let design = design::Design::find(&root, "fuzz").unwrap();
    let design = design.with_values(values).unwrap();
    let mut config = Config::of(&design, &root).unwrap();
    if let Some(most) = late {
        config.storage.dram = Memory::Late { most, seed: 3 };
    }
    let media = Media::memory(design.media.bytes.0).unwrap();
    let device = FastDevice::new(config, media).unwrap();
    let mut system = System::new(&HostConfig::default()).unwrap();
    let windows = [
        (Bar::Nvme, 64 << 10),
        (Bar::Pm, design.window_bytes()),
        (Bar::Control, 1 << 20),
    ];
    let slot = system
        .add_device(Box::new(device), &LinkConfig::default(), &windows)
        .unwrap();
    (system, slot)
}

#[test]
fn loads_bring_what_stores_have_left() {
    stores_and_loads(None);
}

#[test]
fn so_they_do_where_the_memory_is_late() {
    stores_and_loads(Some(Time::us(2)));
}

fn stores_and_loads(late: Option<Time>) {
    let (mut system, device) = system("engine = []", late);
    let mut random = Random::new(7);
    let mut model = vec![0u8; 64 << 10];
    for n in 0..400u64 {
        let at = random.below(60 << 10) as usize;
        let len = 1 + random.below(3000) as usize;
        if random.below(2) == 0 {
            let data: Vec<u8> = (0..len as u64)
                .map(|b| (b * 31 + n * 7 + 1) as u8)
                .collect();
            system
                .mmio_write(device, Bar::Pm, at as u64, &data)
                .unwrap();
            model[at..at + len].copy_from_slice(&data);
        } else {
            let data = system.mmio_read(device, Bar::Pm, at as u64, len).unwrap();
            let wrong = data.iter().zip(&model[at..]).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "load {n} of {len} bytes at {at:#x}");
        }
    }
}
