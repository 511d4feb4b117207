// SPDX-License-Identifier: Apache-2.0

//! Prints the operations of a workload's transactions, for a program that repeats them:
//! `operations WORKLOAD SEED TRANSACTIONS`. Lines are `p KEY`, `u KEY OFFSET BYTES`, `r KEY`, and
//! `c` or `a` at the end of a transaction that is committed or aborted. First come the transactions
//! that make the initial contents.

use workloads::{Operation, Scale, Workload};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, seed, count] = &words[..] else {
        return Err("usage: operations WORKLOAD SEED TRANSACTIONS".into());
    };
    let workload = Workload::new(name, Scale::SMALL)?;
    for (operations, committed) in workload.operations(seed.parse()?, count.parse()?)? {
        for operation in operations {
            match operation {
                Operation::Put { key, .. } => println!("p {key}"),
                Operation::Update { key, at, bytes } => println!("u {key} {at} {bytes}"),
                Operation::Remove { key } => println!("r {key}"),
            }
        }
        println!("{}", if committed { "c" } else { "a" });
    }
    Ok(())
}
