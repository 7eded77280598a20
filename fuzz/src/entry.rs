//! The binary of one target: libFuzzer's under cargo-fuzz, else one that reads the files it is given.

use std::process::ExitCode;

/// `main` of the target that `$target` is.
#[macro_export]
macro_rules! entry {
    ($target:ident) => {
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| {
            $crate::targets::$target::run(input);
        });

        #[cfg(not(fuzzing))]
        fn main() -> ::std::process::ExitCode {
            $crate::entry::replay($crate::targets::$target::run)
        }
    };
}

/// Runs a target over the files named on the command line; prints what came of each.
pub fn replay(run: fn(&[u8]) -> String) -> ExitCode {
    for path in std::env::args_os().skip(1) {
        match fs_err::read(&path) {
            Ok(input) => println!("{}: {}", path.display(), run(&input)),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
