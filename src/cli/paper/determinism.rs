//! Table 7: how far results depend on the timing of reads (Appendix B).

use rabitq_ssd::evaluate::Agreement;
use rabitq_ssd::{Metric, Pipeline, SearchResult};
use serde_json::json;

use super::exhibit::{Cell, Exhibit};
use super::lab::{Lab, Search};
use super::repeat;
use crate::cli::options::Preset;

const RUNS: usize = 8;
const RECALL: f64 = 0.9;
/// The ranks [1, r] that the quantile of the drain protects.
const HEAD: f64 = 0.4;

pub(crate) fn run(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    let mut table = Exhibit::new(
        format!("Table 7: queries with unchanged results over {RUNS} runs"),
        "scheduled 99.95 % at k = 10 and 99.96 % at k = 100; full 97.89 % and 35.85 %, in [1, r] \
         99.98 % and 99.66 %; recall spread at most 0.645 pp",
        &["k", "variant", "T", "top-k %", "[1, r] %", "(r, k] %", "recall spread pp"],
    );
    let subject = lab.subject("", Preset::Paper, |_| ())?;
    for k in lab.ks(&[10, 100]) {
        let query = Search::of(Preset::Paper, k);
        let nprobe = lab.point(&subject, &query, RECALL)?.nprobe;
        let variants = [
            ("scheduled", query.clone().pipeline(Pipeline::Scheduled)),
            ("full", query.clone()),
            ("deterministic", Search::of(Preset::Default, k).deterministic()),
        ];
        for (name, query) in variants {
            let (runs, recalls) = runs(lab, &subject, &query, nprobe)?;
            let r = (HEAD * k as f64).ceil() as usize;
            let agreement = Agreement::of(&runs, r, |query, id| distance(lab, query, id))?;
            let most = recalls.iter().copied().fold(f64::MIN, f64::max);
            let least = recalls.iter().copied().fold(f64::MAX, f64::min);
            let spread = 100.0 * (most - least);
            let threads = lab.most_threads();
            lab.record(
                "determinism",
                &subject.name,
                &json!({
                    "k": k, "variant": name, "threads": threads, "runs": RUNS, "nprobe": nprobe,
                    "agreement": agreement, "recall_spread_pp": spread,
                }),
            )?;
            let shares = [agreement.top_k, agreement.head, agreement.tail].map(Cell::percent);
            let mut cells = vec![k.into(), name.into(), threads.into()];
            cells.extend(shares);
            cells.push((spread, 4).into());
            table.row(cells);
        }
    }
    Ok(vec![table, repeat::run(lab)?])
}

type Runs = (Vec<Vec<SearchResult>>, Vec<f64>);

fn runs(
    lab: &Lab<'_>,
    subject: &super::lab::Subject,
    search: &Search,
    nprobe: usize,
) -> anyhow::Result<Runs> {
    let setting = search.on(lab.most_threads()).at(nprobe);
    let mut all = Runs::default();
    for _ in 0..RUNS {
        let (results, recall) = subject.trial().search(&setting)?;
        all.0.push(results);
        all.1.push(recall);
    }
    Ok(all)
}

/// The true distance of a row from a query, by definition.
fn distance(lab: &Lab<'_>, query: usize, row: u64) -> anyhow::Result<f64> {
    let dim = lab.data.base.dim();
    let mut values = vec![0.0; dim];
    lab.data.base.read_f32(row, &mut values)?;
    let query = &lab.data.queries[query * dim..(query + 1) * dim];
    let sum = |each: fn(f64, f64) -> f64| -> f64 {
        query.iter().zip(&values).map(|(&q, &x)| each(f64::from(q), f64::from(x))).sum()
    };
    Ok(match lab.metric {
        Metric::Ip => -sum(|q, x| q * x),
        Metric::Cosine => -sum(|q, x| q * x) / (sum(|q, _| q * q) * sum(|_, x| x * x)).sqrt(),
        _ => sum(|q, x| (q - x).powi(2)),
    })
}
