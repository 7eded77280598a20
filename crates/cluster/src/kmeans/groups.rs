//! Rows by the coarse list they belong to.

/// Row numbers grouped by list, ascending within each.
pub(super) struct Groups {
    rows: Vec<u32>,
    starts: Vec<usize>,
}

impl Groups {
    /// Groups the rows of `lists` by a counting sort; every entry is below `nlist`.
    pub(super) fn new(lists: Vec<u32>, nlist: usize) -> Self {
        let mut starts = vec![0; nlist + 1];
        for &list in &lists {
            starts[list as usize + 1] += 1;
        }
        for i in 0..nlist {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; lists.len()];
        for (row, list) in (0u32..).zip(lists) {
            rows[next[list as usize]] = row;
            next[list as usize] += 1;
        }
        Self { rows, starts }
    }

    /// Number of lists.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of rows in all lists.
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The rows of one list.
    pub(super) fn of(&self, list: usize) -> &[u32] {
        &self.rows[self.starts[list]..self.starts[list + 1]]
    }
}
