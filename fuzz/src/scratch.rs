//! Files for readers that want a path, and small indexes for targets to spoil: one folder a thread.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use rabitq_ssd::dataset::{Base, Dtype, VectorWriter};
use rabitq_ssd::{
    Backend, BuildOptions, CoarseKind, Direct, Index, Metric, OpenError, OpenOptions, Prefix,
    RecordKind, SearchOptions, Silent,
};
use tempfile::TempDir;

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().expect("a folder for temporary files");
    static INDEXES: OnceCell<Vec<Intact>> = const { OnceCell::new() };
}

/// An index as it was built.
pub(crate) struct Intact {
    pub(crate) dir: PathBuf,
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

/// Writes a file of this name and hands its path to `read`.
pub(crate) fn with_file<T>(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    FOLDER.with(|folder| {
        let path = folder.path().join(name);
        fs_err::write(&path, bytes).expect("a temporary file");
        read(&path)
    })
}

/// Hands one of the small indexes to `spoil`, and puts its files back as they were.
pub(crate) fn with_index<T>(which: u8, spoil: impl FnOnce(&Intact) -> T) -> T {
    INDEXES.with(|indexes| {
        let indexes = indexes.get_or_init(build_all);
        let index = &indexes[usize::from(which) % indexes.len()];
        let done = spoil(index);
        for (name, bytes) in &index.files {
            let path = index.dir.join(name);
            if fs_err::read(&path).is_ok_and(|found| &found != bytes) {
                fs_err::write(&path, bytes).expect("a temporary file");
            }
        }
        done
    })
}

impl Intact {
    pub(crate) fn bytes(&self, name: &str) -> Option<&[u8]> {
        let found = self.files.iter().find(|file| file.0 == name);
        found.map(|file| file.1.as_slice())
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs_err::write(self.dir.join(name), bytes).expect("a temporary file");
    }

    /// Opens the index as it is now.
    pub(crate) fn open(&self) -> Result<Index, OpenError> {
        let o =
            OpenOptions { backend: Backend::Memory, direct: Direct::Off, ..OpenOptions::default() };
        Index::open(&self.dir, &o)
    }

    /// Opens the index as it is now, searches it in several ways and verifies it.
    pub(crate) fn use_it(&self) -> String {
        let index = match self.open() {
            Ok(index) => index,
            Err(error) => return error.to_string(),
        };
        let dim = index.dim();
        let query: Vec<f32> = (0..dim).map(|d| (d % 7) as f32 - 3.0).collect();
        let everything = SearchOptions { k: 1000, nprobe: 1000, ..SearchOptions::default() };
        let narrow = SearchOptions { k: 3, nprobe: 2, ..SearchOptions::default() };
        let paper = SearchOptions { k: 2, ..SearchOptions::paper() };
        let mut outcome = String::new();
        for (query, o) in [
            (&query, &everything),
            (&query, &narrow),
            (&query, &paper),
            (&vec![0.0; dim], &everything),
        ] {
            match index.search(query, o) {
                Ok(found) => {
                    assert_eq!(found.ids.len(), found.scores.len());
                    assert!(found.ids.len() <= o.k);
                    outcome += "answered ";
                }
                Err(error) => outcome += &error.to_string(),
            }
        }
        let _ = (index.info(), rabitq_ssd::verify(&self.dir, &Silent));
        outcome
    }
}

/// Each record kind, coarse quantizer and file once.
fn build_all() -> Vec<Intact> {
    use {CoarseKind as C, Metric as M, RecordKind as R};
    let o = |record, metric, coarse, nlist| BuildOptions {
        record,
        metric,
        coarse,
        nlist: Some(nlist),
        threads: 1,
        ..BuildOptions::default()
    };
    let ids = Some((0..8).map(|row| 100 + row).collect());
    vec![
        build(64, 128, &BuildOptions { prefix: Prefix::Dims(64), ..o(R::Split, M::L2, C::Irq, 6) }),
        build(40, 16, &o(R::F32, M::Cosine, C::Flat, 3)),
        build(8, 1024, &BuildOptions { ids, ..o(R::U8, M::L2, C::Flat, 2) }),
        build(64, 64, &o(R::Sq8, M::Ip, C::Hnsw, 6)),
        build(64, 64, &o(R::Sq4, M::L2, C::Flat, 4)),
        build(4, 1100, &o(R::F32, M::L2, C::Flat, 1)),
    ]
}

fn build(n: usize, dim: usize, o: &BuildOptions) -> Intact {
    let folder = folder();
    let (name, dtype) = match o.record {
        RecordKind::U8 => ("base.u8bin", Dtype::U8),
        _ => ("base.fbin", Dtype::F32),
    };
    let base = write_base(&folder.join(name), dtype, n, dim);
    let dir = folder.join(format!("{}-{}-{dim}", o.record, o.metric));
    Index::build(&base, &dir, o, &Silent).expect("an index");
    Intact { files: files_of(&dir), dir }
}

/// The folder of this thread.
pub(crate) fn folder() -> PathBuf {
    FOLDER.with(|folder| folder.path().to_path_buf())
}

/// A base of `n` rows.
pub(crate) fn write_base(path: &Path, dtype: Dtype, n: usize, dim: usize) -> Base {
    let mut out = VectorWriter::create(path, dim, dtype).expect("a base");
    for row in 0..n {
        // The third row is zero, which cosine sets apart.
        let value = |d: usize| if row == 2 { 0.0 } else { ((row * 31 + d * 17) % 23) as f32 };
        out.write_f32(&(0..dim).map(value).collect::<Vec<_>>()).expect("a row");
    }
    out.finish().expect("a base");
    Base::open(&[path]).expect("a base")
}

/// The files of a folder by name.
pub(crate) fn files_of(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs_err::read_dir(dir)
        .expect("an index")
        .map(|entry| entry.expect("a file").path())
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, fs_err::read(&path).expect("a file"))
        })
        .collect();
    files.sort();
    files
}
