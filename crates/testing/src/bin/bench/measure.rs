//! Clocks, memory and the like.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread so far, in nanoseconds. Another process that wants the machine does not
/// count.
fn cpu_nanos() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The CPU time `work` takes, in microseconds.
pub(crate) fn cpu_micros(work: impl FnOnce() -> Result<(), String>) -> Result<f64, String> {
    let before = cpu_nanos();
    work()?;
    Ok((cpu_nanos() - before) as f64 / 1_000.0)
}

/// The CPU time that all threads of this process take meanwhile, in milliseconds.
pub(crate) fn all_cpu_millis(work: impl FnOnce() -> Result<(), String>) -> Result<f64, String> {
    let nanos = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let before = nanos();
    work()?;
    Ok((nanos() - before) as f64 / 1e6)
}

/// The time `work` takes, and what it returns.
pub(crate) fn timed<T>(work: impl FnOnce() -> Result<T, String>) -> Result<(Duration, T), String> {
    let before = Instant::now();
    let value = work()?;
    Ok((before.elapsed(), value))
}

/// The most memory this process has used so far, in MiB.
pub(crate) fn peak_mib() -> f64 {
    status("VmHWM:")
}

/// The memory this process uses, in MiB.
pub(crate) fn resident_mib() -> f64 {
    status("VmRSS:")
}

/// A line of what the kernel says about this process, in MiB.
fn status(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1_024.0
}

/// The smallest and the middle one.
pub(crate) fn best_and_median(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let best = values.first().copied().unwrap_or(0.0);
    (best, values.get(values.len() / 2).copied().unwrap_or(0.0))
}
