// SPDX-License-Identifier: Apache-2.0

//! What registers and memories hold at power-on, before a reset sets those that have one.

use std::fmt;
use std::str::FromStr;

use sim::InvalidValue;

use crate::error::{Error, Result};

/// What all registers and memories of one model hold when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InitialValues {
    /// 0 in all bits.
    Zeros,
    /// 1 in all bits.
    Ones,
    /// Random bits; the same seed gives the same.
    Random(u64),
}

/// What they hold in each life of a device, which is the time from one power-on to the next.
/// Nothing that a device does may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PowerUpRegisters {
    /// The same in each life.
    Always(InitialValues),
    /// Different in each life: zeros, ones or random bits, chosen by this seed, the number of the
    /// life and the clock edge at which it begins. So copies of one run that lose their power at
    /// different times differ, too.
    Each(u64),
}

impl Default for PowerUpRegisters {
    fn default() -> PowerUpRegisters {
        PowerUpRegisters::Each(1)
    }
}

impl PowerUpRegisters {
    /// Those that the environment variable `POWER_UP` names, else the default ones.
    pub fn named() -> Result<PowerUpRegisters> {
        match std::env::var("POWER_UP") {
            Ok(text) if !text.is_empty() => text.parse().map_err(Error::PowerUp),
            _ => Ok(PowerUpRegisters::default()),
        }
    }

    /// What they hold in life number `life` (1 is the first one), which begins at clock edge
    /// `edge`.
    pub fn for_life(self, life: u32, edge: u64) -> InitialValues {
        let seed = match self {
            PowerUpRegisters::Always(contents) => return contents,
            PowerUpRegisters::Each(seed) => seed,
        };
        let place = sim::Random::new(edge).next() ^ u64::from(life);
        let mut random = sim::Random::new(sim::Random::new(place).next() ^ seed);
        match random.below(4) {
            0 => InitialValues::Zeros,
            1 => InitialValues::Ones,
            _ => InitialValues::Random(random.next()),
        }
    }
}

impl fmt::Display for PowerUpRegisters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PowerUpRegisters::Always(InitialValues::Zeros) => f.write_str("zeros"),
            PowerUpRegisters::Always(InitialValues::Ones) => f.write_str("ones"),
            PowerUpRegisters::Always(InitialValues::Random(seed)) => write!(f, "random:{seed}"),
            PowerUpRegisters::Each(seed) => write!(f, "each:{seed}"),
        }
    }
}

impl FromStr for PowerUpRegisters {
    type Err = InvalidValue;

    fn from_str(text: &str) -> std::result::Result<PowerUpRegisters, InvalidValue> {
        let (name, seed) = text.split_once(':').unwrap_or((text, "1"));
        let seed = sim::parse_digits(seed);
        match (name, seed) {
            _ if text == "zeros" => Ok(PowerUpRegisters::Always(InitialValues::Zeros)),
            _ if text == "ones" => Ok(PowerUpRegisters::Always(InitialValues::Ones)),
            ("random", Some(seed)) => Ok(PowerUpRegisters::Always(InitialValues::Random(seed))),
            ("each", Some(seed)) => Ok(PowerUpRegisters::Each(seed)),
            _ => Err(InvalidValue::new(
                "registers",
                format_args!("{text:?}"),
                "allowed are zeros, ones, random, random:SEED, each, each:SEED, with SEED below \
                 2^64",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn power_up_contents_parse_as_printed() {
        for text in ["zeros", "ones", "random:7", "each:18446744073709551615"] {
            let registers: PowerUpRegisters = text.parse().unwrap();
            assert_eq!(registers.to_string(), text);
        }
        assert_eq!(
            "random".parse(),
            Ok(PowerUpRegisters::Always(InitialValues::Random(1)))
        );
        assert_eq!("each".parse(), Ok(PowerUpRegisters::default()));
        for text in ["", "zero", "zeros:1", "random:", "each:-1", "each:+1", "7"] {
            let error = text.parse::<PowerUpRegisters>().unwrap_err();
            assert!(error.rule.starts_with("allowed are zeros"), "{error}");
        }
    }

    #[test]
    fn power_up_contents_vary_by_life_and_repeat() {
        let registers = PowerUpRegisters::Each(1);
        let lives = (1..4).flat_map(|life| (0..200).map(move |edge| (life, edge)));
        let drawn: Vec<InitialValues> = lives
            .map(|(life, edge)| registers.for_life(life, edge))
            .collect();
        let count = |contents| drawn.iter().filter(|c| **c == contents).count();
        let (zeros, ones) = (count(InitialValues::Zeros), count(InitialValues::Ones));
        assert!((100..200).contains(&zeros), "{zeros} of 600");
        assert!((100..200).contains(&ones), "{ones} of 600");
        let different: HashSet<&InitialValues> = drawn.iter().collect();
        assert_eq!(different.len(), 600 - zeros - ones + 2);
        assert_eq!(registers.for_life(2, 7), drawn[207]);
        assert_ne!(
            PowerUpRegisters::Each(2).for_life(2, 8),
            PowerUpRegisters::Each(3).for_life(2, 8)
        );
    }
}
