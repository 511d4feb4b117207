//! What an insertion into a B-tree costs, on the CPU and offloaded: 10,000 random keys with values of 64 bytes, one transaction each, on the fast engine. All times are simulated.

use std::path::Path;
use std::sync::Arc;

use design::Design;
use fast::FastDevice;
use host::{Fence, Machine, Shared};
use pm::btree::Tree;
use pm::{Engine, Error, Layout, Mechanism, Options, Pool};
use sim::{Bar, Media, Random, System};

const INSERTS: u64 = 10_000;

type Failure = Box<dyn std::error::Error>;

/// A host with a device, and the device's crash-consistency engine if it is to have one. The media are as fast as DRAM.
fn shared(profile: &str, offloaded: bool) -> Result<(Shared, Option<Arc<Engine>>), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (name, values) = match offloaded {
        true => ("nearpm", "[nvme]\nnamespaces = [\"1 MiB\"]\n"),
        false => ("default", ""),
    };
    let text = format!(
        "[media]\nbytes = \"64 MiB\"\nprofile = \"dram\"\n[cpu]\nprofile = \"{profile}\"\n{values}"
    );
    let design = Design::find(&root, name)?.with_values(&text)?;
    let engines = design.engines(&root)?;
    let page = engines.first().and_then(|engine| engine.page);
    let engine = page.map(|page| Arc::new(Engine::new(0, page)));
    let media = Media::memory(design.media.bytes.0)?;
    let device = FastDevice::new(fast::Config::of(&design, &root)?, media)?;
    let (host, link) = design.attached()?;
    let mut system = System::new(&host)?;
    let windows = [
        (Bar::Nvme, 64 << 10),
        (Bar::Pm, design.window_bytes()),
        (Bar::Control, 1 << 20),
    ];
    system.add_device(Box::new(device), &link, &windows)?;
    let machine = Machine::new(system, &design.cpu.host()?);
    Ok((Shared::new(machine), engine))
}

fn measure(
    profile: &str,
    mechanism: Mechanism,
    fence: Fence,
    offloaded: bool,
) -> Result<(), Failure> {
    let (shared, engine) = shared(profile, offloaded)?;
    let cpu = shared.cpu(0);
    let options = Options {
        fence,
        engine,
        ..Options::default()
    };
    let layout = Layout::new("inserts").with(mechanism);
    let pool = Pool::create(&cpu, 0, 0, 32 << 20, &layout, &options)?;
    let mut thread = pool.thread(&cpu)?;
    let tree = thread.run(Tree::create)?;
    let before = thread.counts();
    let mut random = Random::new(1);
    let inserts = if mechanism.is_paged() {
        INSERTS / 10
    } else {
        INSERTS
    };
    for n in 0..inserts {
        let key = random.next();
        thread.run(|tx| {
            let value = tx.create(&[n; 8])?;
            tree.insert(tx, key, value.offset())?;
            Ok::<_, Error>(())
        })?;
    }
    let now = thread.counts();
    tree.check(&mut thread)?;
    let each = |count: fn(&pm::Counts) -> u64| {
        (count(&now) - count(&before)) as f64 / (now.transactions - before.transactions) as f64
    };
    println!(
        "{profile:8} {mechanism:?} {fence:?}{}: {:.0} ns, of which {:.0} ns crash consistency (f = {:.3}); records {:.2}, payload {:.0} B, copied {:.0} B, lines {:.2}, fences {:.2}, commands {:.2}",
        if offloaded { " offloaded" } else { "" },
        each(|c| c.time.0) / 1e3,
        each(|c| c.consistency.0) / 1e3,
        now.fraction(),
        each(|c| c.records),
        each(|c| c.payload),
        each(|c| c.copied),
        each(|c| c.lines),
        each(|c| c.fences),
        each(|c| c.commands),
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    for profile in ["polled", "nearpm"] {
        for mechanism in Mechanism::ALL {
            for offloaded in [false, true] {
                measure(profile, mechanism, Fence::ReadBack, offloaded)?;
            }
        }
        for offloaded in [false, true] {
            measure(profile, Mechanism::Undo, Fence::Posted, offloaded)?;
        }
    }
    Ok(())
}
