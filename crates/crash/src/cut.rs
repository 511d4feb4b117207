// SPDX-License-Identifier: Apache-2.0

//! The description of a power cut, with a textual form. It says when the power fails, which lines
//! leave the cache before, how much longer the devices have power, and which unproven stores are
//! lost. It also says when the power fails again during recovery.

use std::fmt;
use std::str::FromStr;

use sim::{parse_digits, InvalidValue, Random, Time};

use crate::error::Error;

/// A subset of the dirty cache lines, by their position in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineSelection {
    /// Line n if bit n is set.
    Mask(u64),
    /// About half of the lines, generated from a seed.
    Seed(u64),
}

impl LineSelection {
    /// True for a selected line.
    pub fn contains(self, line: usize) -> bool {
        match self {
            LineSelection::Mask(mask) => line < 64 && mask >> line & 1 == 1,
            LineSelection::Seed(seed) => Random::new(seed ^ (line as u64) << 32).next() & 1 == 1,
        }
    }
}

/// How much longer a device has power than the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldUp {
    /// For this time.
    For(Time),
    /// Until it has accepted everything that was sent.
    UntilDrained,
    /// For ever: it keeps its power.
    Indefinite,
}

/// A power cut. Its fields have the names of the textual form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    /// When the host's power fails.
    pub at: Time,
    /// This long before, these lines leave the cache, and the program goes on.
    pub early: Option<(Time, LineSelection)>,
    /// These lines leave the cache at the cut.
    pub evict: Option<LineSelection>,
    /// When each device's power fails; the last entry applies to all further devices.
    pub later: Vec<HoldUp>,
    /// The last unproven stores of each line are lost, a generated number of them. For executors
    /// that do not rely on the order of posted writes.
    pub lost: Option<u64>,
    /// The power fails again this long after the begin of each recovery.
    pub again: Vec<Time>,
    /// The engine recovers its logs; else the CPU does.
    pub engine: bool,
}

/// Longest time between an eviction and the cut, and between the ends of host and devices.
const MAX_OFFSET: Time = Time::us(3);

impl Cut {
    /// A cut at which all power fails at once.
    pub fn at(at: Time) -> Cut {
        Cut {
            at,
            early: None,
            evict: None,
            later: vec![HoldUp::For(Time::ZERO)],
            lost: None,
            again: Vec::new(),
            engine: false,
        }
    }

    /// The hold-up time of a device.
    pub fn later(&self, device: usize) -> HoldUp {
        let own = self.later.get(device).or(self.later.last());
        own.copied().unwrap_or(HoldUp::For(Time::ZERO))
    }

    /// Generates a cut. The stores of an `offloaded` mechanism are persistent in their order.
    pub fn generate(at: Time, random: &mut Random, offloaded: bool, devices: usize) -> Cut {
        let some = |random: &mut Random, of: u64| random.below(of) == 0;
        let pick = |random: &mut Random| LineSelection::Seed(random.next());
        let early = some(random, 4).then(|| {
            let before = Time(1 + random.below(MAX_OFFSET.0.min(at.0.saturating_sub(1)).max(1)));
            (before, pick(random))
        });
        let evict = some(random, 3).then(|| pick(random));
        let mut later = vec![match random.below(3) {
            0 => HoldUp::For(Time::ZERO),
            1 => HoldUp::UntilDrained,
            _ => HoldUp::For(Time(random.below(MAX_OFFSET.0))),
        }];
        // Each of several devices has a separate power supply; one in four keeps its power.
        let own = |random: &mut Random| match random.below(4) {
            0 => HoldUp::For(Time::ZERO),
            1 => HoldUp::Indefinite,
            // Covers most data on a link, and messages between devices.
            2 => HoldUp::For(Time(random.below(MAX_OFFSET.0 / 6))),
            _ => HoldUp::For(Time(random.below(MAX_OFFSET.0))),
        };
        if devices > 1 {
            later = (0..devices).map(|_| own(random)).collect();
        }
        let lost = (!offloaded && some(random, 2)).then(|| random.next());
        let again = 0..[0, 0, 1, 2][random.below(4) as usize];
        // From 30 ns to 120 us, with a logarithmic distribution.
        let again = again.map(|_| {
            let scale = 30_000 << random.below(12);
            Time(scale + random.below(scale))
        });
        Cut {
            at,
            early,
            evict,
            later,
            lost,
            again: again.collect(),
            engine: offloaded && some(random, 2),
        }
    }

    /// The first time at which the run is interrupted.
    pub fn start(&self) -> Time {
        let before = self.early.map_or(Time::ZERO, |early| early.0);
        self.at.saturating_sub(before)
    }

    /// This cut without one of its parts, for each part.
    pub fn simplifications(&self) -> Vec<Cut> {
        let own = || self.clone();
        let mut out = vec![
            Cut {
                again: Vec::new(),
                ..own()
            },
            Cut {
                early: None,
                ..own()
            },
            Cut {
                evict: None,
                ..own()
            },
            Cut {
                lost: None,
                ..own()
            },
            Cut {
                engine: false,
                ..own()
            },
            Cut {
                later: vec![HoldUp::For(Time::ZERO)],
                ..own()
            },
        ];
        out.extend((0..self.again.len()).map(|n| {
            let mut again = self.again.clone();
            again.remove(n);
            Cut { again, ..own() }
        }));
        out.retain(|cut| cut != self);
        out
    }
}

impl fmt::Display for LineSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineSelection::Mask(mask) => write!(f, "m{mask}"),
            LineSelection::Seed(seed) => write!(f, "s{seed}"),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at.0)?;
        if let Some((before, pick)) = self.early {
            write!(f, ":early={}/{pick}", before.0)?;
        }
        if let Some(pick) = self.evict {
            write!(f, ":evict={pick}")?;
        }
        if self.later != [HoldUp::For(Time::ZERO)] {
            for (n, later) in self.later.iter().enumerate() {
                f.write_str(if n == 0 { ":later=" } else { "/" })?;
                match later {
                    HoldUp::For(time) => write!(f, "{}", time.0)?,
                    HoldUp::UntilDrained => f.write_str("all")?,
                    HoldUp::Indefinite => f.write_str("keeps")?,
                }
            }
        }
        if let Some(seed) = self.lost {
            write!(f, ":lost={seed}")?;
        }
        for (n, time) in self.again.iter().enumerate() {
            write!(f, "{}{}", if n == 0 { ":again=" } else { "/" }, time.0)?;
        }
        match self.engine {
            true => f.write_str(":engine"),
            false => Ok(()),
        }
    }
}

/// Longest time, so that sums do not overflow.
const MAX_TIME: u64 = u64::MAX / 8;

fn time(text: &str) -> Option<Time> {
    parse_digits(text).filter(|ps| *ps < MAX_TIME).map(Time)
}

fn pick(text: &str) -> Option<LineSelection> {
    match text.split_at_checked(1)? {
        ("m", mask) => parse_digits(mask).map(LineSelection::Mask),
        ("s", seed) => parse_digits(seed).map(LineSelection::Seed),
        _ => None,
    }
}

impl FromStr for Cut {
    type Err = Error;

    fn from_str(text: &str) -> Result<Cut, Error> {
        let wrong = || Error::Cut(text.into());
        let mut parts = text.split(':');
        let mut cut = Cut::at(parts.next().and_then(time).ok_or_else(wrong)?);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let well = match name {
                "early" => {
                    let (before, lines) = value.split_once('/').ok_or_else(wrong)?;
                    cut.early = time(before).zip(pick(lines));
                    cut.early.is_some()
                }
                "evict" => {
                    cut.evict = pick(value);
                    cut.evict.is_some()
                }
                "later" => {
                    let later = value.split('/').map(|text| match text {
                        "all" => Some(HoldUp::UntilDrained),
                        "keeps" => Some(HoldUp::Indefinite),
                        _ => time(text).map(HoldUp::For),
                    });
                    let later: Option<Vec<HoldUp>> = later.collect();
                    cut.later = later.ok_or_else(wrong)?;
                    true
                }
                "lost" => {
                    cut.lost = parse_digits(value);
                    cut.lost.is_some()
                }
                "again" => {
                    let times: Option<Vec<Time>> = value.split('/').map(time).collect();
                    cut.again = times.ok_or_else(wrong)?;
                    true
                }
                "engine" => {
                    cut.engine = true;
                    value.is_empty()
                }
                _ => false,
            };
            if !well {
                return Err(wrong());
            }
        }
        Ok(cut)
    }
}

/// The cuts of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CutPlan {
    /// This number of generated cuts.
    Sampled(u64),
    /// At each clock edge of the devices; and between all events of the CPUs, with all subsets of
    /// dirty lines that may have left the cache.
    All,
    /// After each command to an engine. Of several devices each fails alone, and the others accept
    /// what was sent.
    Commands,
    /// These cuts.
    At(Vec<Cut>),
}

/// Most cuts of a campaign.
const MAX_CUTS: u64 = 1_000_000;

impl FromStr for CutPlan {
    type Err = Error;

    fn from_str(text: &str) -> Result<CutPlan, Error> {
        let wrong = || {
            let rule = format_args!(
                "allowed are all, commands, sampled:N with N from 1 to {MAX_CUTS}, at:CUT,CUT..."
            );
            InvalidValue::new("cuts", format_args!("{text:?}"), rule).into()
        };
        match text.split_once(':') {
            None if text == "all" => Ok(CutPlan::All),
            None if text == "commands" => Ok(CutPlan::Commands),
            Some(("sampled", count)) => {
                let count = parse_digits(count);
                let count = count.filter(|count| (1..=MAX_CUTS).contains(count));
                count.map(CutPlan::Sampled).ok_or_else(wrong)
            }
            Some(("at", cuts)) => {
                let cuts: Result<Vec<Cut>, Error> = cuts.split(',').map(str::parse).collect();
                cuts.map(CutPlan::At)
            }
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_text_round_trips() {
        let mut random = Random::new(1);
        for n in 0..500 {
            let at = Time(1 + random.below(1 << 40));
            let cut = Cut::generate(at, &mut random, n % 2 == 0, 1 + n % 3);
            assert_eq!(cut.to_string().parse::<Cut>().unwrap(), cut, "{cut}");
            assert!(
                cut.start() <= cut.at && cut.simplifications().iter().all(|other| *other != cut)
            );
        }
        for text in [
            "",
            "x",
            "1:",
            "1:later",
            "1:early=5",
            "1:evict=q1",
            "1:later=5/some",
            "1:again=",
            "1:engine=1",
            "+1",
            "1:lost=+1",
            "1:evict=s+1",
            "99999999999999999999",
        ] {
            let error = text.parse::<Cut>().unwrap_err();
            assert!(error.to_string().contains("allowed is"), "{error}");
        }
    }

    #[test]
    fn cut_plan_is_parsed() {
        assert_eq!("all".parse::<CutPlan>().unwrap(), CutPlan::All);
        assert_eq!("commands".parse::<CutPlan>().unwrap(), CutPlan::Commands);
        assert_eq!("sampled:7".parse::<CutPlan>().unwrap(), CutPlan::Sampled(7));
        let two = CutPlan::At(vec![Cut::at(Time(5)), Cut::at(Time(6))]);
        assert_eq!("at:5,6".parse::<CutPlan>().unwrap(), two);
        for text in [
            "",
            "some",
            "sampled:",
            "sampled:0",
            "sampled:-1",
            "sampled:+1",
            "at:",
            "all:1",
            "commands:",
        ] {
            assert!(text.parse::<CutPlan>().is_err(), "{text}");
        }
    }
}
