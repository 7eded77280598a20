//! The `deterministic` search, over and over: on 1, 2 and 8 threads, idle and beside a load that
//! takes processors and reads. Every run must find the same ids and the same scores, bit for bit.

use rabitq_ssd::SearchResult;
use serde_json::json;

use super::exhibit::Exhibit;
use super::lab::{Lab, Search};
use super::load;
use crate::cli::options::Preset;

const RUNS: usize = 20;
const THREADS: [usize; 3] = [1, 2, 8];
/// Threads of the load.
const LOAD: usize = 2;
const RECALL: f64 = 0.9;

/// How many runs of one kind found what the very first run found.
#[derive(Clone, Copy, Default)]
struct Tally {
    runs: usize,
    same_ids: usize,
    same_scores: usize,
}

pub(crate) fn run(lab: &mut Lab<'_>) -> anyhow::Result<Exhibit> {
    let mut table = Exhibit::new(
        format!("Appendix B: --deterministic over {RUNS} runs, idle and loaded"),
        "results of the default search depend on the order in which reads complete",
        &["k", "T", "load", "runs", "same ids", "same scores", "identical"],
    );
    let subject = lab.subject("", Preset::Paper, |_| ())?;
    for k in lab.ks(&[10, 100]) {
        let query = Search::of(Preset::Default, k).deterministic();
        let nprobe = lab.point(&subject, &Search::of(Preset::Paper, k), RECALL)?.nprobe;
        let mut first: Option<Vec<SearchResult>> = None;
        let mut tallies = [Tally::default(); 2 * THREADS.len()];
        for run in 0..RUNS {
            let kind = run % tallies.len();
            let (threads, loaded) = kind_of(kind);
            let setting = query.on(threads).at(nprobe);
            let (queries, options) = (&subject.data.queries, &setting.options);
            let load = if loaded { LOAD } else { 0 };
            let (found, _) = load::beside(load, &subject.index, queries, options, || {
                subject.trial().search(&setting)
            })?;
            let first = first.get_or_insert_with(|| found.clone());
            let tally = &mut tallies[kind];
            tally.runs += 1;
            tally.same_ids += usize::from(same(first, &found, |a, b| a.ids == b.ids));
            tally.same_scores += usize::from(same(first, &found, same_scores));
        }
        for (kind, tally) in tallies.into_iter().enumerate() {
            let (threads, loaded) = kind_of(kind);
            let load = if loaded { "loaded" } else { "idle" };
            row(lab, &mut table, k, &threads.to_string(), load, tally)?;
        }
        let all = tallies.into_iter().fold(Tally::default(), |a, b| Tally {
            runs: a.runs + b.runs,
            same_ids: a.same_ids + b.same_ids,
            same_scores: a.same_scores + b.same_scores,
        });
        row(lab, &mut table, k, "all", "both", all)?;
    }
    Ok(table)
}

/// Threads, and whether beside a load.
fn kind_of(kind: usize) -> (usize, bool) {
    (THREADS[kind % THREADS.len()], kind >= THREADS.len())
}

fn row(
    lab: &mut Lab<'_>,
    table: &mut Exhibit,
    k: usize,
    threads: &str,
    load: &str,
    tally: Tally,
) -> anyhow::Result<()> {
    let Tally { runs, same_ids, same_scores } = tally;
    let identical = same_ids == runs && same_scores == runs;
    lab.record(
        "repeat",
        "",
        &json!({
            "k": k, "threads": threads, "load": load, "runs": runs, "same_ids": same_ids,
            "same_scores": same_scores, "identical": identical,
        }),
    )?;
    table.row(vec![
        k.into(),
        threads.into(),
        load.into(),
        runs.into(),
        same_ids.into(),
        same_scores.into(),
        (if identical { "yes" } else { "NO" }).into(),
    ]);
    Ok(())
}

fn same(
    a: &[SearchResult],
    b: &[SearchResult],
    equal: impl Fn(&SearchResult, &SearchResult) -> bool,
) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
}

fn same_scores(a: &SearchResult, b: &SearchResult) -> bool {
    let bits =
        |result: &SearchResult| result.scores.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
    bits(a) == bits(b)
}
