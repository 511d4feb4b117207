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

/// Rows of a device, with the order in which they come.
pub struct Run {
    pub rows: Rows,
    pub order: Vec<u32>,
}

impl Run {
    /// Refuses a run that is not in order; `whose` begins what the error says.
    pub fn check(&self, whose: impl FnOnce() -> String) -> Result<()> {
        let rows = &self.rows;
        let sorted = self
            .order
            .is_sorted_by(|&a, &b| key(rows, a) <= key(rows, b));
        let wrong = || Error::new(format!("{} rows that are not in order", whose()));
        sorted.then_some(()).ok_or_else(wrong)
    }

    fn at(&self, n: usize) -> Option<Row<'_>> {
        self.order.get(n).map(|&row| key(&self.rows, row))
    }
}

/// A tree whose nodes hold who lost there: the next row costs a comparison a level.
struct Losers<'a> {
    runs: &'a [Run],
    next: Vec<usize>,
    /// At 0 the winner.
    nodes: Vec<usize>,
}

impl Losers<'_> {
    /// Whether a run's next row comes before another's; of equal ones the first run's does.
    fn before(&self, a: usize, b: usize) -> bool {
        match (self.runs[a].at(self.next[a]), self.runs[b].at(self.next[b])) {
            (Some(x), Some(y)) => x.cmp(&y).then(a.cmp(&b)).is_lt(),
            (head, _) => head.is_some(),
        }
    }

    fn new(runs: &[Run]) -> Losers<'_> {
        let count = runs.len();
        let mut tree = Losers {
            runs,
            next: vec![0; count],
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
pub fn merge(runs: &[Run]) -> Vec<(u32, u32)> {
    let total = runs.iter().map(|run| run.order.len()).sum();
    let mut out = Vec::with_capacity(total);
    let mut tree = Losers::new(runs);
    while out.len() < total {
        let run = tree.nodes[0];
        out.push((run as u32, runs[run].order[tree.next[run]]));
        tree.next[run] += 1;
        tree.replay(run);
    }
    out
}
