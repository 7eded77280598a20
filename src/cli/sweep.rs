//! What `bench` crosses: lists of values from the command line, or from a file.
//!
//! ```toml
//! index = ["split.index", "f32.index"]   # beside the one on the command line
//! k = [10, 100]
//! recall = [0.9, 0.95]                    # or nprobe = [8, 16, 32]
//! threads = [1, 2]
//! pipeline = ["scheduled", "full"]
//! alpha = [0.4, 1.0]
//! inflight = [8, 16]
//! threshold = ["seeded", "paper"]
//! ```
//! Record kind and prefix dims belong to an index, so several of those are several indexes.

use std::path::{Path, PathBuf};

use anyhow::Context;
use rabitq_ssd::{Pipeline, SearchOptions, Threshold};
use serde::Deserialize;

use super::failure::usage;
use super::options::{self, Setting};

/// Settings of one run at most: at a second each, more than a day.
const MOST_SETTINGS: usize = 100_000;

/// Lists of values; an empty one leaves the default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sweep {
    /// Relative to the folder of the file.
    pub(crate) index: Vec<PathBuf>,
    pub(crate) k: Vec<usize>,
    pub(crate) nprobe: Vec<usize>,
    pub(crate) recall: Vec<f64>,
    pub(crate) threads: Vec<usize>,
    pub(crate) alpha: Vec<f32>,
    pub(crate) inflight: Vec<usize>,
    pub(crate) pipeline: Vec<Pipeline>,
    pub(crate) threshold: Vec<Threshold>,
}

impl Sweep {
    /// Read a file and refuse values the command line would refuse.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = path.display();
        let mut sweep: Self = toml::from_str(&fs_err::read_to_string(path)?)
            .with_context(|| format!("{file} is no sweep"))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        sweep.index.iter_mut().for_each(|index| *index = folder.join(&index));
        let counts = [
            ("k", &sweep.k, options::at_least_1 as fn(&str) -> Result<usize, String>),
            ("nprobe", &sweep.nprobe, options::at_least_1),
            ("threads", &sweep.threads, options::thread_count),
            ("inflight", &sweep.inflight, options::at_least_1),
        ];
        for (name, values, check) in counts {
            for value in values {
                check(&value.to_string())
                    .map_err(|problem| usage(format!("{file}: {name}: {problem}")))?;
            }
        }
        let alphas = sweep.alpha.iter().map(|alpha| ("alpha", alpha.to_string()));
        let recalls = sweep.recall.iter().map(|recall| ("recall", recall.to_string()));
        for (name, value) in alphas.chain(recalls) {
            options::share::<f64>(&value)
                .map_err(|problem| usage(format!("{file}: {name}: {problem}")))?;
        }
        if !sweep.nprobe.is_empty() && !sweep.recall.is_empty() {
            return Err(usage(format!("{file}: nprobe and recall exclude each other")));
        }
        Ok(sweep)
    }

    /// Refuses lists whose cross product nobody could wait for.
    pub(crate) fn bounded(self) -> anyhow::Result<Self> {
        let lists = [
            self.k.len(),
            self.nprobe.len(),
            self.recall.len(),
            self.threads.len(),
            self.alpha.len(),
            self.inflight.len(),
            self.pipeline.len(),
            self.threshold.len(),
        ];
        let settings = lists.iter().fold(1, |all: usize, &len| all.saturating_mul(len.max(1)));
        if settings > MOST_SETTINGS {
            return Err(usage(format!(
                "these lists cross to {settings} settings; at most {MOST_SETTINGS} are measured at \
                 once: leave some values out"
            )));
        }
        Ok(self)
    }

    /// These lists, and `other`'s where there is none. nprobe and recall count as one list.
    pub(crate) fn or(mut self, other: Self) -> Self {
        fn fill<T>(list: &mut Vec<T>, other: Vec<T>) {
            if list.is_empty() {
                *list = other;
            }
        }
        if self.nprobe.is_empty() && self.recall.is_empty() {
            (self.nprobe, self.recall) = (other.nprobe, other.recall);
        }
        self.index.extend(other.index);
        fill(&mut self.k, other.k);
        fill(&mut self.threads, other.threads);
        fill(&mut self.alpha, other.alpha);
        fill(&mut self.inflight, other.inflight);
        fill(&mut self.pipeline, other.pipeline);
        fill(&mut self.threshold, other.threshold);
        if self.k.is_empty() {
            self.k.push(SearchOptions::default().k);
        }
        self
    }

    /// Every combination; nprobe changes fastest.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let mut all = vec![Setting::default()];
        cross(&mut all, &self.k, |setting, &k| setting.k = k);
        cross(&mut all, &self.threads, |setting, &threads| setting.threads = Some(threads));
        cross(&mut all, &self.threshold, |setting, &start| setting.threshold = Some(start));
        cross(&mut all, &self.pipeline, |setting, &pipeline| setting.pipeline = pipeline);
        cross(&mut all, &self.inflight, |setting, &reads| setting.inflight = Some(reads));
        cross(&mut all, &self.alpha, |setting, &alpha| setting.alpha = Some(alpha));
        cross(&mut all, &self.nprobe, |setting, &nprobe| setting.nprobe = Some(nprobe));
        all
    }
}

/// Every setting with every value.
fn cross<T>(settings: &mut Vec<Setting>, values: &[T], set: impl Fn(&mut Setting, &T)) {
    if values.is_empty() {
        return;
    }
    let with = |setting: Setting, value: &T| {
        let mut setting = setting;
        set(&mut setting, value);
        setting
    };
    *settings = settings
        .iter()
        .flat_map(|&old| values.iter().map(move |v| (old, v)))
        .map(|(s, v)| with(s, v))
        .collect();
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Sweep> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep.toml");
        fs_err::write(&path, text).unwrap();
        Sweep::read(&path)
    }

    #[test]
    fn the_command_line_overrides_a_file_list_by_list() {
        let file = read("k = [10, 100]\nrecall = [0.9]\npipeline = [\"full\", \"fifo\"]").unwrap();
        let line = Sweep { nprobe: vec![4, 8], k: vec![1], ..Sweep::default() };
        let both = line.or(file);
        assert_eq!((both.k.as_slice(), both.nprobe.as_slice()), (&[1][..], &[4, 8][..]));
        assert!(both.recall.is_empty());
        let settings = both.settings();
        assert_eq!(settings.len(), 4);
        assert_eq!((settings[1].nprobe, settings[1].pipeline), (Some(8), Pipeline::Full));
    }

    #[test]
    fn lists_that_cross_to_more_than_can_be_measured_are_refused_with_the_number() {
        let many = |n| Sweep { k: vec![1; n], alpha: vec![1.0; 1000], ..Sweep::default() };
        assert_eq!(many(100).bounded().unwrap().settings().len(), 100_000);
        assert!(many(101).bounded().unwrap_err().to_string().contains("101000 settings"));
        let lists = Sweep { threads: vec![1; 1 << 22], nprobe: vec![1; 1 << 22], ..many(1 << 22) };
        assert!(lists.bounded().is_err());
    }

    #[test]
    fn unknown_names_and_values_out_of_range_are_refused() {
        for text in [
            "q = [1]",
            "k = [0]",
            "alpha = [1.5]",
            "recall = [0.0]",
            "k = 10",
            "pipeline = [\"fast\"]",
            "nprobe = [1]\nrecall = [0.5]",
            "threads = [-1]",
            "threads = [1025]",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
