//! Figure 4: what the CPU does and how many reads are in flight while each pipeline answers one
//! query, alone and beside the other threads of a batch.

use rabitq_ssd::Pipeline;

use super::lab::{Lab, Search, Subject};
use super::load;
use crate::cli::report::{Lane, Timeline};

const PIPELINES: [Pipeline; 5] = [
    Pipeline::Naive,
    Pipeline::Coalesced,
    Pipeline::Overlapped,
    Pipeline::Scheduled,
    Pipeline::Full,
];

/// A timeline for one thread, and one for the most threads.
pub(super) fn figure4(
    lab: &Lab<'_>,
    subject: &Subject,
    search: &Search,
    nprobe: usize,
) -> anyhow::Result<Vec<Timeline>> {
    let query = typical(subject, search, nprobe)?;
    let mut counts = vec![1, lab.most_threads()];
    counts.dedup();
    let mut timelines = Vec::new();
    for threads in counts {
        let lanes = PIPELINES.map(|pipeline| {
            let search = search.clone().pipeline(pipeline);
            lane(subject, &search, nprobe, threads, query)
        });
        timelines.push(Timeline {
            title: format!("Figure 4, k = {}, T = {threads}: query {query}", search.options.k),
            note: "CPU activity as strips, reads in flight as steps. With T threads, T - 1 others \
                   search in the same way."
                .into(),
            lanes: lanes.into_iter().collect::<anyhow::Result<_>>()?,
        });
    }
    Ok(timelines)
}

/// The query that reads the median number of pages.
fn typical(subject: &Subject, search: &Search, nprobe: usize) -> anyhow::Result<usize> {
    let (results, _) = subject.trial().search(&search.on(1).at(nprobe))?;
    let mut by_pages: Vec<usize> = (0..results.len()).collect();
    by_pages.sort_by_key(|&query| results[query].stats.pages);
    Ok(by_pages.get(by_pages.len() / 2).copied().unwrap_or(0))
}

fn lane(
    subject: &Subject,
    search: &Search,
    nprobe: usize,
    threads: usize,
    query: usize,
) -> anyhow::Result<Lane> {
    let mut options = search.on(threads).at(nprobe).options;
    options.inflight = Some(options.effective_inflight(threads));
    let queries = &subject.data.queries;
    let dim = subject.index.dim();
    let asked = &queries[query * dim..(query + 1) * dim];
    let traced = load::beside(threads - 1, &subject.index, queries, &options, || {
        // The first search warms up.
        subject.index.search(asked, &options)?;
        subject.index.trace(asked, &options)
    });
    let (result, trace) = traced?;
    let name = format!("{}, nprobe {nprobe}", options.pipeline);
    Ok(Lane::of(name, &trace, result.stats.total_ns))
}
