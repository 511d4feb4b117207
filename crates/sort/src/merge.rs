//! The order of rows that come from several devices, each in order.

use arrow_row::{Row, Rows};

use crate::key::prefix;
use crate::{Error, Result};

/// Numbers of a device's rows in their order. The first `sorted` came from the engine; the others have no key.
///
/// Where the engine has compared the beginning of the keys only, those that begin alike are put in order here: `ties` counts them.
pub fn order(rows: &Rows, sorted: usize, nulls_first: bool, ties: Option<&mut u64>) -> Vec<u32> {
    let mut out: Vec<u32> = (0..rows.num_rows() as u32).collect();
    if let Some(ties) = ties {
        let mut start = 0;
        while start < sorted {
            let first = prefix(rows, start);
            let same = (start..sorted).take_while(|&n| prefix(rows, n) == first);
            let end = start + same.count();
            if end - start > 1 {
                *ties += (end - start) as u64;
                out[start..end].sort_by(|&a, &b| key(rows, a).cmp(&key(rows, b)));
            }
            start = end;
        }
    }
    if nulls_first {
        out.rotate_left(sorted);
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
