//! Whatever single byte of an index changes and wherever a file is cut, it shows, or changes nothing.
//!
//! ```text
//! for each of many random damages, to any file of one of five small indexes:
//!     refused at open, by the file's name                              }
//!     or each search fails with file and page, or answers as before    }  never a panic,
//!     a search that reads everything meets every damaged page          }  never another answer
//!     verify names the file, and the page where the file has pages     }
//! ```
//! `RABITQ_SSD_FLIPS` and `RABITQ_SSD_CUTS` set how many, `RABITQ_SSD_DAMAGE_SEED` which.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[allow(dead_code, unreachable_pub)]
mod support;

use std::fs::OpenOptions as File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rabitq_ssd::dataset::Dtype;
use rabitq_ssd::{
    Backend, BuildOptions, CoarseKind, Direct, Index, Metric, OpenOptions, Prefix, RecordKind,
    SearchError, SearchOptions, Silent, verify,
};
use support::{Fixture, Rng, clustered};

/// Files that are read page by page, while searching.
const PAGED: [&str; 3] = ["records.bin", "ids.bin", "zeros.bin"];
/// Outside the identity of an index: never read by a search.
const BESIDE: &str = "build.json";

type Answer = Result<(Vec<u64>, Vec<u32>), SearchError>;

/// A small index as it was built, and what it answered.
struct Subject {
    fixture: Fixture,
    files: Vec<(String, u64)>,
    answers: Vec<(Vec<u64>, Vec<u32>)>,
}

/// One byte changed, or a file cut.
#[derive(Clone, Debug)]
struct Damage {
    file: String,
    at: u64,
    /// What the byte is xored with; `None` cuts the file before it.
    mask: Option<u8>,
}

/// How often damage came to what.
#[derive(Debug, Default)]
struct Tally {
    refused: usize,
    reported: usize,
    harmless: usize,
}

#[test]
fn a_changed_byte_shows_or_changes_no_answer() {
    let mut rng = Rng(seed());
    let subjects = subjects();
    let mut tally = Tally::default();
    for round in 0..count("RABITQ_SSD_FLIPS", 400) {
        let subject = &subjects[rng.next() as usize % subjects.len()];
        let (file, bytes) = subject.pick(&mut rng);
        let mask = Some(1 + (rng.next() % 255) as u8);
        subject.suffer(&Damage { file, at: rng.next() % bytes, mask }, round, &mut tally);
    }
    eprintln!("changed bytes: {tally:?}");
}

#[test]
fn a_file_cut_anywhere_is_refused_by_name() {
    let mut rng = Rng(seed() ^ 1);
    let subjects = subjects();
    let mut tally = Tally::default();
    for round in 0..count("RABITQ_SSD_CUTS", 60) {
        let subject = &subjects[rng.next() as usize % subjects.len()];
        let (file, bytes) = subject.pick(&mut rng);
        subject.suffer(&Damage { file, at: rng.next() % bytes, mask: None }, round, &mut tally);
    }
    assert_eq!(tally.reported, 0, "sizes are compared before anything is searched");
    eprintln!("cut files: {tally:?}");
}

fn seed() -> u64 {
    count("RABITQ_SSD_DAMAGE_SEED", 1) as u64
}

fn count(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |value| value.parse().unwrap())
}

/// Every record kind, coarse quantizer, metric and file once.
fn subjects() -> Vec<Subject> {
    let floats = |n, dim| Fixture::clustered(n, dim, 5);
    let mut with_zeros = clustered(40, 1100, 6);
    with_zeros[7].fill(0.0);
    with_zeros[23].fill(0.0);
    let bytes = clustered(40, 1024, 7)
        .into_iter()
        .map(|row| row.into_iter().map(|v| (v * 30.0 + 128.0).round().clamp(0.0, 255.0)).collect())
        .collect();
    let o = |record, metric, coarse, nlist| BuildOptions {
        record,
        metric,
        coarse,
        nlist: Some(nlist),
        ..BuildOptions::default()
    };
    use {CoarseKind as C, Metric as M, RecordKind as R};
    vec![
        Subject::new(
            floats(600, 128),
            &BuildOptions { prefix: Prefix::Dims(64), ..o(R::Split, M::L2, C::Irq, 24) },
        ),
        Subject::new(Fixture::of(with_zeros, Dtype::F32), &o(R::F32, M::Cosine, C::Flat, 3)),
        Subject::new(
            Fixture::of(bytes, Dtype::U8),
            &BuildOptions {
                ids: Some((0..40).map(|i| 1000 + 7 * i).collect()),
                ..o(R::U8, M::L2, C::Flat, 3)
            },
        ),
        Subject::new(floats(400, 64), &o(R::Sq8, M::Ip, C::Hnsw, 20)),
        Subject::new(floats(400, 64), &o(R::Sq4, M::L2, C::Flat, 8)),
    ]
}

/// The searches every damage is held against; the first reads every record.
fn searches() -> [SearchOptions; 3] {
    let everything = SearchOptions { k: 1000, nprobe: 1000, alpha: 1.0, ..Default::default() };
    let narrow = SearchOptions { k: 5, nprobe: 3, deterministic: true, ..Default::default() };
    let one = SearchOptions { k: 1, nprobe: 1, deterministic: true, ..Default::default() };
    [everything, narrow, one]
}

impl Subject {
    fn new(fixture: Fixture, o: &BuildOptions) -> Self {
        let dir = fixture.path("index");
        Index::build(&fixture.base(), &dir, o, &Silent).unwrap();
        let mut files: Vec<(String, u64)> = std::fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|e| (e.file_name().into_string().unwrap(), e.metadata().unwrap().len()))
            .collect();
        files.sort();
        let mut subject = Self { fixture, files, answers: Vec::new() };
        subject.answers = subject.ask(&subject.open(0).unwrap()).map(Result::unwrap).collect();
        subject
    }

    fn dir(&self) -> PathBuf {
        self.fixture.path("index")
    }

    fn open(&self, round: usize) -> Result<Index, rabitq_ssd::OpenError> {
        let backend = [Backend::Pread, Backend::Memory][round % 2];
        Index::open(
            &self.dir(),
            &OpenOptions { backend, direct: Direct::Off, ..OpenOptions::default() },
        )
    }

    fn ask<'a>(&'a self, index: &'a Index) -> impl Iterator<Item = Answer> + 'a {
        let query = &self.fixture.rows[0];
        searches().into_iter().map(move |o| {
            let found = index.search(query, &o)?;
            Ok((found.ids, found.scores.iter().map(|score| score.to_bits()).collect()))
        })
    }

    /// A file: every second time any, else the more likely the longer.
    fn pick(&self, rng: &mut Rng) -> (String, u64) {
        if rng.next() & 1 == 0 {
            return self.files[rng.next() as usize % self.files.len()].clone();
        }
        let mut at = rng.next() % self.files.iter().map(|file| file.1).sum::<u64>();
        let holds = |(_, bytes): &&(String, u64)| {
            let inside = at < *bytes;
            at = at.saturating_sub(*bytes);
            inside
        };
        self.files.iter().find(holds).unwrap().clone()
    }

    /// Damage the index, look at what that comes to, and undo it.
    fn suffer(&self, damage: &Damage, round: usize, tally: &mut Tally) {
        let path = self.dir().join(&damage.file);
        let before = std::fs::read(&path).unwrap();
        let file = File::new().write(true).open(&path).unwrap();
        match damage.mask {
            Some(mask) => file.write_all_at(&[before[damage.at as usize] ^ mask], damage.at),
            None => file.set_len(damage.at),
        }
        .unwrap();
        match self.open(round) {
            Err(error) => {
                assert!(error.to_string().contains(&damage.file), "{damage:?}: {error}");
                assert_ne!(damage.file, BESIDE, "{error}");
                assert!(damage.mask.is_none() || !PAGED.contains(&damage.file.as_str()));
                tally.refused += 1;
            }
            Ok(index) => self.compare(&index, damage, tally),
        }
        self.verify(damage);
        file.write_all_at(&before[damage.at as usize..], damage.at).unwrap();
    }

    /// The index opened: its answers are those of before, or errors that name the damaged page.
    fn compare(&self, index: &Index, damage: &Damage, tally: &mut Tally) {
        let paged = PAGED.contains(&damage.file.as_str());
        assert!(damage.file == BESIDE || (paged && damage.mask.is_some()), "{damage:?} opened");
        let unit =
            if damage.file == "records.bin" { index.info().pages_per_record as u64 } else { 1 };
        let bad = damage.at / 4096 / unit * unit;
        let mut reported = false;
        for (search, (answer, before)) in self.ask(index).zip(&self.answers).enumerate() {
            match answer {
                Ok(answer) => {
                    assert_eq!(&answer, before, "{damage:?} search {search}");
                    assert!(search > 0 || !paged, "{damage:?}: every page was read");
                }
                Err(SearchError::Corrupt { file, page }) => {
                    assert_eq!((file, page), (self.dir().join(&damage.file), bad), "{damage:?}");
                    reported = true;
                }
                Err(other) => panic!("{damage:?} search {search}: {other}"),
            }
        }
        *(if reported { &mut tally.reported } else { &mut tally.harmless }) += 1;
    }

    /// What `verify` says names the damaged file and no other, and of a paged one the page.
    fn verify(&self, damage: &Damage) {
        let report = match verify(&self.dir(), &Silent) {
            Ok(report) => report,
            Err(error) => {
                assert_eq!(damage.file, "manifest.json", "{error}");
                assert!(error.to_string().contains("manifest.json"), "{damage:?}: {error}");
                return;
            }
        };
        assert_eq!(report.ok(), damage.file == BESIDE, "{damage:?}: {report:?}");
        let bad: Vec<_> = report.files.iter().filter(|file| !file.ok).collect();
        if damage.file != BESIDE {
            assert_eq!(bad.len(), 1, "{damage:?}: {report:?}");
            assert_eq!(bad[0].name, damage.file);
        }
        if damage.mask.is_some() && PAGED.contains(&damage.file.as_str()) {
            assert!(bad[0].bad_pages.contains(&(damage.at / 4096)), "{damage:?}: {report:?}");
        }
    }
}
