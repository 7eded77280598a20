//! Options that several commands share, and how single values are read.

use std::str::FromStr;

use clap::Args;
use rabitq_ssd::{
    Backend, Direct, OpenOptions, Pipeline, SearchOptions, TableBits, Threshold, available_threads,
};

use super::failure::usage;

/// The part of a search's options that `search` takes once and `bench` crosses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) k: usize,
    pub(crate) nprobe: Option<usize>,
    pub(crate) alpha: Option<f32>,
    pub(crate) inflight: Option<usize>,
    pub(crate) pipeline: Pipeline,
    pub(crate) threads: Option<usize>,
}

impl Setting {
    /// The threads asked for, or all the machine offers.
    pub(crate) fn threads(&self) -> usize {
        threads(self.threads)
    }
}

/// Options of every search, the same in `search` and `bench`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub(crate) struct SearchArgs {
    /// Width of the lower bounds in standard deviations: larger reads more and misses less.
    /// 1.9 misses 2.87 % of the vectors below the threshold, 4 practically none
    #[arg(long, value_name = "E", default_value_t = SearchOptions::default().epsilon,
          value_parser = epsilon, allow_negative_numbers = true)]
    epsilon: f32,
    /// Where pruning starts: seeded (from the k-th smallest upper bound of the codes in RAM) or
    /// paper (from +infinity, until k records came back)
    #[arg(long, value_name = "NAME", default_value_t = Threshold::Seeded)]
    threshold: Threshold,
    /// Bits of the lookup tables: auto, 8 (faster, wider bounds) or 16
    #[arg(long, value_name = "auto|8|16", default_value_t = TableBits::Auto)]
    table_bits: TableBits,
    /// The same ids and scores on every run, whatever the timing of reads; implies --alpha 1
    #[arg(long)]
    deterministic: bool,
    #[command(flatten)]
    open: OpenArgs,
}

/// How the record file of an index is read.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Reading the disk")]
pub(crate) struct OpenArgs {
    /// How pages are read: auto (the first that works), io_uring, pread or memory
    #[arg(long, value_name = "NAME", default_value_t = Backend::Auto)]
    io_backend: Backend,
    /// O_DIRECT: auto (where the file system allows), on or off (through the page cache)
    #[arg(long, value_name = "auto|on|off", default_value_t = Direct::Auto)]
    direct: Direct,
}

impl OpenArgs {
    pub(crate) fn options(self) -> OpenOptions {
        OpenOptions { backend: self.io_backend, direct: self.direct }
    }
}

impl SearchArgs {
    /// How the index is to be opened.
    pub(crate) fn open(&self) -> OpenOptions {
        self.open.options()
    }

    /// The options of one search; refuses an alpha that `--deterministic` contradicts.
    pub(crate) fn options(&self, setting: &Setting) -> anyhow::Result<SearchOptions> {
        let default = SearchOptions::default();
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
            epsilon: self.epsilon,
            pipeline: setting.pipeline,
            threshold: self.threshold,
            table_bits: self.table_bits,
            deterministic: self.deterministic,
        })
    }
}

/// The threads asked for, or all the machine offers.
pub(crate) fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(available_threads)
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

fn epsilon(text: &str) -> Result<f32, String> {
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
