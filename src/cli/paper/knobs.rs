//! Figures 14 and 15: the in-flight budget Q and the drain's alpha (Appendix C.3).

use super::exhibit::{Exhibit, Line, columns, cost, joined};
use super::lab::{Lab, Search};
use super::operating_points::target;
use crate::cli::options::Preset;

const RECALL: f64 = 0.9;
const BUDGETS: [usize; 6] = [4, 8, 16, 32, 64, 128];
const ALPHAS: [f32; 8] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0];

pub(crate) fn inflight(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    let mut table = Exhibit::new(
        "Figure 14: reads in flight, recall 0.90",
        "the best Q rises with k and falls with T; the rule (16 up to 16 threads, 8 above) stays \
         within 3.7 % of the best",
        &columns(&["k", "T", "Q", "rule / best %"]),
    );
    let subject = lab.subject("", Preset::Paper, |_| ())?;
    let mut lines = Vec::new();
    for k in lab.ks(&[10, 100, 1000]) {
        let query = Search::of(Preset::Paper, k);
        let nprobe = lab.point(&subject, &query, RECALL)?.nprobe;
        for threads in lab.threads.clone() {
            let mut rows = Vec::new();
            for budget in BUDGETS {
                let query = query.clone().inflight(budget);
                rows.push(lab.measure("figure14", &subject, &query, threads, nprobe)?);
            }
            let rule = query.options.effective_inflight(threads);
            let best = rows.iter().map(|row| row.qps).fold(0.0, f64::max);
            let of_rule = rows.iter().find(|row| row.inflight == Some(rule));
            let share = of_rule.map_or(f64::NAN, |row| 100.0 * row.qps / best);
            for row in &rows {
                let budget = row.inflight.unwrap_or(rule);
                let names = vec![k.into(), threads.into(), budget.into(), (share, 1).into()];
                table.row(joined(names, cost(row)));
            }
            lines.push(Line {
                name: format!("k {k}, T {threads}"),
                points: BUDGETS.iter().zip(&rows).map(|(&q, row)| (q as f64, row.qps)).collect(),
            });
        }
    }
    table.plot("reads in flight", "QPS", lines);
    Ok(vec![table])
}

pub(crate) fn alpha(lab: &mut Lab<'_>) -> anyhow::Result<Vec<Exhibit>> {
    let mut table = Exhibit::new(
        "Figure 15: the drain's alpha, recall 0.90",
        "below 0.4 the pages hardly change, above they nearly double (k = 100: 125 at 0.1, 132 at \
         0.4, 236 at 1.0); 0.4 stays within 6.6 % of the best QPS",
        &columns(&["k", "alpha", "T", "target"]),
    );
    let subject = lab.subject("", Preset::Paper, |_| ())?;
    let mut lines = Vec::new();
    for k in lab.ks(&[10, 100, 1000]) {
        for alpha in ALPHAS {
            let query = Search::of(Preset::Paper, k).alpha(alpha);
            let threads = lab.most_threads();
            let row = lab.measure_at("figure15", &subject, &query, threads, RECALL)?;
            let names =
                vec![k.into(), (f64::from(alpha), 1).into(), threads.into(), target(&row, RECALL)];
            table.row(joined(names, cost(&row)));
            let rows = lab.curve("figure15", &subject, &query, threads, 0.7)?;
            lines.push(Line {
                name: format!("k {k}, alpha {alpha}"),
                points: rows.iter().map(|row| (row.recall, row.qps)).collect(),
            });
        }
    }
    table.plot("recall", "QPS", lines);
    Ok(vec![table])
}
