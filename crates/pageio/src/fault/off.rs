//! No faults: what a build without the feature `fault-injection` has instead of `fault.rs`.

use std::io;

use crate::request::Extent;
use crate::{PageReader, ReadError};

#[derive(Clone, Default)]
pub(crate) struct Injector(());

impl Injector {
    pub(crate) fn for_reader(&self) -> Injector {
        Injector(())
    }

    pub(crate) fn wrap(self, reader: Box<dyn PageReader>) -> Box<dyn PageReader> {
        reader
    }

    pub(crate) fn strike(&self, _: &Extent, _: u64, _: &mut [u8]) -> Result<(), ReadError> {
        Ok(())
    }

    pub(crate) fn decide(&self, _slot: u32, _first: u64, _count: u32) -> Harm {
        Harm(())
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Harm(());

impl Harm {
    pub(crate) fn silences(self) -> bool {
        false
    }

    #[allow(clippy::needless_pass_by_ref_mut)] // as `fault.rs` needs it
    pub(crate) fn alter(&mut self, _: &mut usize, said: io::Result<usize>) -> io::Result<usize> {
        said
    }
}
