//! Options that several commands share, and how single values are read.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use rabitq_ssd::evaluate::TunedPoint;
use rabitq_ssd::{
    Backend, BuildOptions, Direct, OpenOptions, Pipeline, SearchOptions, TableBits, Threshold,
    available_threads,
};

use super::failure::usage;

/// The part of a search's options that `search` takes once and `bench` crosses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setting {
    pub(crate) k: usize,
    pub(crate) nprobe: Option<usize>,
    pub(crate) alpha: Option<f32>,
    pub(crate) inflight: Option<usize>,
    pub(crate) pipeline: Pipeline,
    pub(crate) threads: Option<usize>,
    /// Instead of the one that holds for all settings.
    pub(crate) threshold: Option<Threshold>,
}

impl Setting {
    /// The threads asked for, or all the machine offers.
    pub(crate) fn threads(&self) -> usize {
        threads(self.threads)
    }
}

/// What options stand for that are not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preset {
    /// The library's defaults.
    Default,
    /// The configuration of the paper (§5.1).
    Paper,
}

impl Preset {
    /// Options of a build of a base of `rows` rows.
    pub(crate) fn build(self, rows: u64) -> BuildOptions {
        match self {
            Self::Default => BuildOptions::default(),
            Self::Paper => BuildOptions::paper(rows),
        }
    }

    /// Options of a search.
    pub(crate) fn search(self) -> SearchOptions {
        match self {
            Self::Default => SearchOptions::default(),
            Self::Paper => SearchOptions::paper(),
        }
    }
}

impl Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Default => "default",
            Self::Paper => "paper",
        })
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => Ok(Self::Default),
            "paper" => Ok(Self::Paper),
            other => Err(format!("unknown preset {other:?}: expected one of default, paper")),
        }
    }
}

/// Options of every search, the same in `search` and `bench`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub(crate) struct SearchArgs {
    /// What options that are not given stand for: default, or paper (the paper's search: threshold
    /// paper, 16-bit tables, alpha 0.4, 16 reads in flight up to 16 threads and 8 above)
    #[arg(long, value_name = "default|paper", default_value_t = Preset::Default)]
    preset: Preset,
    /// Width of the lower bounds in standard deviations: larger reads more and misses less.
    /// 1.9 misses 2.87 % of the vectors below the threshold, 4 practically none [default: 1.9]
    #[arg(long, value_name = "E", value_parser = epsilon, allow_negative_numbers = true)]
    epsilon: Option<f32>,
    /// Where pruning starts: seeded (from the k-th smallest upper bound of the codes in RAM) or
    /// paper (from +infinity, until k records came back) [default: seeded]
    #[arg(long, value_name = "NAME")]
    threshold: Option<Threshold>,
    /// Bits of the lookup tables: auto, 8 (faster, wider bounds) or 16 [default: auto]
    #[arg(long, value_name = "auto|8|16")]
    table_bits: Option<TableBits>,
    /// The same ids and scores on every run, whatever the timing of reads; implies --alpha 1
    #[arg(long)]
    deterministic: bool,
    /// Fail when the answer to one query takes longer than so many seconds, 0.05 for example
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    query_timeout: Option<Duration>,
    #[command(flatten)]
    open: OpenArgs,
}

/// How the record file of an index is read.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Reading the disk")]
pub(crate) struct OpenArgs {
    /// How pages are read: auto (the first that works), io_uring, aio, pread or memory
    #[arg(long, value_name = "NAME", default_value_t = Backend::Auto)]
    io_backend: Backend,
    /// O_DIRECT: auto (where the file system allows), on or off (through the page cache)
    #[arg(long, value_name = "auto|on|off", default_value_t = Direct::Auto)]
    direct: Direct,
    /// Give up on a disk that answers nothing for so long; 0 waits for ever
    #[arg(long, value_name = "SECONDS", default_value_t = 30, allow_negative_numbers = true)]
    io_timeout: u32,
}

impl OpenArgs {
    pub(crate) fn options(self) -> OpenOptions {
        let seconds = u64::from(self.io_timeout);
        OpenOptions {
            backend: self.io_backend,
            direct: self.direct,
            io_timeout: (seconds > 0).then(|| Duration::from_secs(seconds)),
        }
    }
}

impl SearchArgs {
    /// How the index is to be opened.
    pub(crate) fn open(&self) -> OpenOptions {
        self.open.options()
    }

    /// Takes what a tuned point fixes, but for what was given on the command line.
    pub(crate) fn take(&self, point: &TunedPoint, alpha: Option<f32>, options: &mut SearchOptions) {
        let given = options.clone();
        point.apply(options);
        if alpha.is_some() || self.deterministic {
            options.alpha = given.alpha;
        }
        if self.epsilon.is_some() {
            options.epsilon = given.epsilon;
        }
    }

    /// Whether nothing was given that may find less than the tuned point did.
    pub(crate) fn keeps_tuned(&self, alpha: Option<f32>) -> bool {
        let own = alpha.is_some() || self.epsilon.is_some() || self.threshold.is_some();
        !own && self.preset == Preset::Default
    }

    /// The options of one search; refuses an alpha that `--deterministic` contradicts.
    pub(crate) fn options(&self, setting: &Setting) -> anyhow::Result<SearchOptions> {
        let default = self.preset.search();
        let alpha = match (self.deterministic, setting.alpha) {
            (true, Some(alpha)) if alpha != 1.0 => {
                return Err(usage(format!(
                    "--alpha {alpha} contradicts --deterministic, which needs alpha 1: leave out \
                     one of them"
                )));
            }
            (true, _) => 1.0,
            (false, alpha) => alpha.unwrap_or(default.alpha),
        };
        Ok(SearchOptions {
            k: setting.k,
            nprobe: setting.nprobe.unwrap_or(default.nprobe),
            alpha,
            inflight: setting.inflight,
            epsilon: self.epsilon.unwrap_or(default.epsilon),
            pipeline: setting.pipeline,
            threshold: setting.threshold.or(self.threshold).unwrap_or(default.threshold),
            table_bits: self.table_bits.unwrap_or(default.table_bits),
            deterministic: self.deterministic,
            timeout: self.query_timeout,
            cancel: None,
        })
    }
}

/// A time above zero.
fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is not a number of seconds above 0");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    if time.is_zero() { Err(wrong()) } else { Ok(time) }
}

/// The threads asked for, or all the machine offers.
pub(crate) fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(available_threads)
}

/// Threads beyond this only contend: starting 5,000 on two cores takes minutes.
const MOST_THREADS: usize = 1024;

/// A number of threads.
pub(crate) fn thread_count(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|count| (1..=MOST_THREADS).contains(count))
        .ok_or_else(|| format!("expected a whole number from 1 to {MOST_THREADS}, found {text:?}"))
}

/// A whole number of at least 1.
pub(crate) fn at_least_1(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&number| number >= 1)
        .ok_or_else(|| format!("expected a whole number of at least 1, found {text:?}"))
}

/// A share in (0, 1].
pub(crate) fn share<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    text.parse()
        .ok()
        .filter(|share: &T| *share > T::from(0) && *share <= T::from(1))
        .ok_or_else(|| format!("expected a number above 0 and at most 1, found {text:?}"))
}

pub(crate) fn epsilon(text: &str) -> Result<f32, String> {
    text.parse()
        .ok()
        .filter(|&width: &f32| width >= 0.0 && width.is_finite())
        .ok_or_else(|| format!("expected a finite number of at least 0, found {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_refused() {
        for text in ["0", "-1", "1.5", "", "x", "99999999999999999999999"] {
            assert!(at_least_1(text).is_err(), "{text}");
        }
        for text in ["0", "-0.1", "1.01", "NaN", "inf"] {
            assert!(share::<f32>(text).is_err(), "{text}");
        }
        for text in ["-1", "NaN", "inf"] {
            assert!(epsilon(text).is_err(), "{text}");
        }
        assert_eq!(at_least_1("1000000000"), Ok(1_000_000_000));
        assert_eq!(share("1"), Ok(1.0f64));
    }
}
