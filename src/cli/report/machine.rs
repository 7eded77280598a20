//! What a measurement ran on, as far as the system tells: `/proc`, `/sys`, and the index itself.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rabitq_ssd::{IndexInfo, available_threads};

use super::super::next::quoted;
use super::super::size::{Size, grouped};

/// Version, date and command line, the machine, and how the index in `dir` is read. `ceiling` is
/// the random 4 KiB reads a second of its disk.
pub(crate) fn machine(dir: &Path, info: &IndexInfo, ceiling: Option<f64>) -> Vec<(String, String)> {
    let direct = if info.direct { "O_DIRECT" } else { "through the page cache" };
    let mut io = format!("{}, {direct}", info.io_backend);
    for note in &info.io_notes {
        io.push('\n');
        io.push_str(note);
    }
    let command: Vec<String> = std::env::args_os()
        .enumerate()
        .map(|(i, word)| match i {
            0 => env!("CARGO_PKG_NAME").to_string(),
            _ => quoted(Path::new(&word)),
        })
        .collect();
    let mut pairs = vec![
        ("version", concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_string()),
        ("date", date(SystemTime::now())),
        ("command", command.join(" ")),
        ("processor", processor()),
        ("memory", memory()),
        ("system", system()),
        ("disk", disk(dir)),
        ("kernels", info.kernels.clone()),
        ("I/O", io),
    ];
    if let Some(reads) = ceiling {
        let reads = grouped(reads as u64);
        pairs.push(("read ceiling", format!("{reads} random 4 KiB reads/s from one thread")));
    }
    pairs.retain(|(_, value)| !value.is_empty());
    pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// A file of the system as text; empty where there is none.
fn read(path: impl AsRef<Path>) -> String {
    fs_err::read_to_string(path.as_ref()).unwrap_or_default().trim().to_string()
}

fn processor() -> String {
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(':'))
        .map_or(std::env::consts::ARCH, |(_, model)| model.trim());
    format!("{model}, {} threads", available_threads())
}

fn memory() -> String {
    let info = read("/proc/meminfo");
    let kib = info
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map_or_else(String::new, |kib| Size(kib << 10).to_string())
}

fn system() -> String {
    let release = read("/proc/sys/kernel/osrelease");
    format!("{} {release}", read("/proc/sys/kernel/ostype")).trim().to_string()
}

/// The disk below `dir`: file system, device, kind and model.
fn disk(dir: &Path) -> String {
    let Ok(dir) = fs_err::canonicalize(dir) else {
        return String::new();
    };
    let Some((kind, source)) = mount(&read("/proc/self/mountinfo"), &dir) else {
        return String::new();
    };
    let device = fs_err::canonicalize(&source).unwrap_or_else(|_| source.clone().into());
    let name = device.file_name().map(|name| name.to_string_lossy().into_owned());
    let block = name.and_then(|name| {
        let block = fs_err::canonicalize(Path::new("/sys/class/block").join(name)).ok()?;
        // A partition has its disk as parent.
        Some(if block.join("partition").exists() { block.parent()?.to_path_buf() } else { block })
    });
    let Some(block) = block else {
        return format!("{kind} on {source}");
    };
    let model = read(block.join("device/model"));
    let name = block.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let what = match read(block.join("queue/rotational")).as_str() {
        _ if name.starts_with("nvme") => "NVMe",
        _ if name.starts_with("vd") => "virtual disk (virtio)",
        "1" => "reported as rotating",
        _ => "solid state",
    };
    [format!("{kind} on {source}"), what.to_string(), model]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

/// File system and source of the innermost mount that holds `path`, from
/// `36 35 8:1 / /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw`.
fn mount(table: &str, path: &Path) -> Option<(String, String)> {
    let mounts = table.lines().filter_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?.replace("\\040", " ");
        let mut words = file_system.split(' ');
        let (kind, source) = (words.next()?, words.next()?);
        path.starts_with(&point).then(|| (point.len(), kind.to_string(), source.to_string()))
    });
    // The last of equals is mounted over the others.
    mounts.max_by_key(|(length, ..)| *length).map(|(_, kind, source)| (kind, source))
}

/// `2026-02-28 13:05 UTC`.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut day, minute) = (seconds / 86_400, seconds / 60 % 1440);
    let leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    format!("{year}-{month:02}-{:02} {:02}:{:02} UTC", day + 1, minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (1_772_323_200, "2026-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn the_innermost_mount_holds_a_path() {
        let table = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                     2 1 8:2 / /data rw shared:1 - xfs /dev/nvme0n1p1 rw\n\
                     3 1 8:3 / /data\\040two rw - btrfs /dev/sdb rw";
        let found = |path: &str| mount(table, Path::new(path)).map(|(kind, _)| kind);
        assert_eq!(found("/data/index").as_deref(), Some("xfs"));
        assert_eq!(found("/data two/index").as_deref(), Some("btrfs"));
        assert_eq!(found("/database").as_deref(), Some("ext4"));
    }
}
