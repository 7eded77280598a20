//! The command line: one file a command, in the order a newcomer meets them.
//!
//! ```text
//! Cli ─ parse (clap: wrong names and values stop here, exit code 2)
//!  └─ run ─ the command's run(args, console)
//!            ├─ stdout: results. Tables for people, or with --json one object a line
//!            └─ stderr: plans' warnings, progress, errors
//! ```
//! Commands open files, call the library and print what came back; they compute nothing of their
//! own. An error travels up as `anyhow::Error` and becomes a message and an exit code in
//! [`failure`].

mod quickstart;
mod generate;
mod estimate;
mod build;
mod groundtruth;
mod search;
mod bench;
mod tune;
mod paper;
mod info;
mod verify;
mod convert;

mod options;
mod choices;
mod sweep;
mod rows;
mod vectors;
mod pattern;
mod ids;
mod csv;
mod publish;
mod report;
mod next;
mod console;
mod table;
mod progress;
mod signal;
mod size;
pub(crate) mod failure;

use clap::{Parser, Subcommand};

use console::Console;

/// Nearest-neighbour search over more vectors than fit in memory, on one machine with one NVMe
/// disk.
///
/// An index keeps a short code of every vector in RAM and the rest in records on disk; a search
/// scans the codes and reads only the pages that can still hold a neighbour.
#[derive(Debug, Parser)]
#[command(name = "rabitq-ssd", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print JSON on stdout, one object a line, and nothing else there
    #[arg(long, global = true)]
    json: bool,
    /// No progress and no notes on stderr; warnings and errors stay
    #[arg(long, short, global = true)]
    quiet: bool,
}

const EXAMPLES: &str = "\
A first look, without any data of your own:
  rabitq-ssd quickstart

From a vector file to neighbours:
  rabitq-ssd build base.fbin --out my.index --memory 2GiB
  rabitq-ssd search my.index queries.fbin --k 10
  rabitq-ssd groundtruth --base base.fbin --queries queries.fbin --out gt.bin
  rabitq-ssd bench my.index queries.fbin gt.bin --recall 0.9,0.95

A search by its recall instead of its settings:
  rabitq-ssd tune my.index --base base.fbin
  rabitq-ssd search my.index queries.fbin --recall 0.95

Vector files are told apart by extension: .fbin .u8bin .i8bin .f16bin .fvecs .bvecs .npy
Exit codes: 0 success, 1 the work failed, 2 wrong usage";

#[derive(Debug, Subcommand)]
enum Command {
    Quickstart(quickstart::Args),
    Generate(generate::Args),
    Estimate(estimate::Args),
    Build(build::Args),
    Groundtruth(groundtruth::Args),
    Search(search::Args),
    Bench(Box<bench::Args>),
    Tune(tune::Args),
    Info(info::Args),
    Verify(verify::Args),
    Convert(convert::Args),
}

/// Run the parsed command.
pub(crate) fn run(cli: Cli) -> anyhow::Result<()> {
    let console = Console::new(cli.json, cli.quiet);
    match cli.command {
        Command::Quickstart(args) => quickstart::run(&args, &console),
        Command::Generate(args) => generate::run(&args, &console),
        Command::Estimate(args) => estimate::run(&args, &console),
        Command::Build(args) => build::run(&args, &console),
        Command::Groundtruth(args) => groundtruth::run(&args, &console),
        Command::Search(args) => search::run(&args, &console),
        Command::Bench(args) => bench::run(&args, &console),
        Command::Tune(args) => tune::run(&args, &console),
        Command::Info(args) => info::run(&args, &console),
        Command::Verify(args) => verify::run(&args, &console),
        Command::Convert(args) => convert::run(&args, &console),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_tree_holds_no_contradiction() {
        super::Cli::command().debug_assert();
    }
}
