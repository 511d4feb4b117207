//! The order of rows that come from several devices, each in order.

use arrow_row::{Row, Rows};

use crate::{Error, Result};

/// How a device's rows come.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Rows whose first key is null stand together, at one end.
    pub nulls: usize,
    /// It is the first end.
    pub nulls_before: bool,
    /// So many come from the engine, the others stand behind.
    pub sorted: usize,
}

/// Numbers of a device's rows in their order.
///
/// Where the engine has not compared whole keys, rows that it took for equal stand together (`alike`), and are put in order here: `ties` counts them.
pub fn order(
    rows: &Rows,
    arrival: Arrival,
    nulls_first: bool,
    alike: Option<&dyn Fn(usize, usize) -> bool>,
    ties: &mut u64,
) -> Vec<u32> {
    let count = rows.num_rows();
    let mut out: Vec<u32> = (0..count as u32).collect();
    if let Some(alike) = alike {
        let mut start = 0;
        while start < arrival.sorted {
            let same = (start..arrival.sorted).take_while(|&n| alike(start, n));
            let end = start + same.count().max(1);
            if end - start > 1 {
                *ties += (end - start) as u64;
                out[start..end].sort_by(|&a, &b| key(rows, a).cmp(&key(rows, b)));
            }
            start = end;
        }
    }
    match (arrival.nulls_before, nulls_first) {
        (false, true) => out.rotate_right(arrival.nulls),
        (true, false) => out.rotate_left(arrival.nulls),
        _ => {}
    }
    out
}

fn key(rows: &Rows, row: u32) -> Row<'_> {
    rows.row(row as usize)
}

/// Refuses rows that are not in order; `whose` begins what the error says.
pub fn check(rows: &Rows, order: &[u32], whose: impl FnOnce() -> String) -> Result<()> {
    let sorted = order.is_sorted_by(|&a, &b| key(rows, a) <= key(rows, b));
    let wrong = || Error::new(format!("{} rows that are not in order", whose()));
    sorted.then_some(()).ok_or_else(wrong)
}

/// Rows of which a run has the keys at hand.
const BLOCK: usize = 8192;

/// Makes the normalised keys of rows.
pub type Keys<'a> = Box<dyn Fn(&[u32]) -> Result<Rows> + 'a>;

/// A partition's rows in their order.
pub struct Run<'a> {
    order: Vec<u32>,
    keys: Keys<'a>,
    /// Keys of the rows from `first` on.
    block: Option<Rows>,
    first: usize,
    next: usize,
}

impl<'a> Run<'a> {
    /// A run at its first row.
    pub fn new(order: Vec<u32>, keys: Keys<'a>) -> Result<Run<'a>> {
        let mut run = Run {
            order,
            keys,
            block: None,
            first: 0,
            next: 0,
        };
        run.fill()?;
        Ok(run)
    }

    /// Keys of the next rows.
    fn fill(&mut self) -> Result<()> {
        let end = self.order.len().min(self.next + BLOCK);
        let rows = &self.order[self.next..end];
        self.block = match rows.is_empty() {
            true => None,
            false => Some((self.keys)(rows)?),
        };
        self.first = self.next;
        Ok(())
    }

    fn head(&self) -> Option<Row<'_>> {
        let block = self.block.as_ref()?;
        Some(block.row(self.next - self.first))
    }

    /// The next row; the run goes on.
    fn take(&mut self) -> Result<u32> {
        let row = self.order[self.next];
        self.next += 1;
        if self.next - self.first == BLOCK || self.next == self.order.len() {
            self.fill()?;
        }
        Ok(row)
    }
}

/// A tree whose nodes hold who lost there: the next row costs a comparison a level.
struct Losers<'a> {
    runs: Vec<Run<'a>>,
    /// At 0 the winner.
    nodes: Vec<usize>,
}

impl<'a> Losers<'a> {
    /// Whether a run's next row comes before another's; of equal ones the first run's does.
    fn before(&self, a: usize, b: usize) -> bool {
        match (self.runs[a].head(), self.runs[b].head()) {
            (Some(x), Some(y)) => x.cmp(&y).then(a.cmp(&b)).is_lt(),
            (head, _) => head.is_some(),
        }
    }

    fn new(runs: Vec<Run<'a>>) -> Losers<'a> {
        let count = runs.len();
        let mut tree = Losers {
            runs,
            nodes: vec![0; count],
        };
        let mut winners = vec![0; 2 * count];
        (0..count).for_each(|n| winners[count + n] = n);
        for node in (1..count).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if tree.before(a, b) { (a, b) } else { (b, a) };
            (winners[node], tree.nodes[node]) = (winner, loser);
        }
        if count > 0 {
            tree.nodes[0] = winners[1];
        }
        tree
    }

    /// The run that the next row comes from has gone on.
    fn replay(&mut self, run: usize) {
        let (mut winner, mut node) = (run, (run + self.runs.len()) / 2);
        while node > 0 {
            if self.before(self.nodes[node], winner) {
                std::mem::swap(&mut self.nodes[node], &mut winner);
            }
            node /= 2;
        }
        self.nodes[0] = winner;
    }
}

/// All rows in order, as (run, row).
pub fn merge(runs: Vec<Run>) -> Result<Vec<(u32, u32)>> {
    let total = runs.iter().map(|run| run.order.len()).sum();
    let mut out = Vec::with_capacity(total);
    let mut tree = Losers::new(runs);
    while out.len() < total {
        let run = tree.nodes[0];
        out.push((run as u32, tree.runs[run].take()?));
        tree.replay(run);
    }
    Ok(out)
}
