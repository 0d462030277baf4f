//! What processes use of the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use crate::text;

/// What one process had used when it was last seen.
pub(crate) struct Used {
    pub(crate) nanos: u64,
    pub(crate) peak_mib: f64,
    pub(crate) is_agent: bool,
}

/// Looks at a process and everything below it until it ends. The system says only of the whole tree
/// what it used, so we look often.
pub(crate) fn watch(child: &mut Child, agent: &Path) -> Result<BTreeMap<u32, Used>, String> {
    let mut used = BTreeMap::new();
    loop {
        let ended = child.try_wait().map_err(text)?;
        if let Some(status) = ended {
            return if status.success() {
                Ok(used)
            } else {
                Err(format!("a turn ended with {status}"))
            };
        }
        used.extend(below(child.id(), agent));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A process and everything below it, as it is now.
pub(crate) fn below(id: u32, agent: &Path) -> BTreeMap<u32, Used> {
    let (mut used, mut open) = (BTreeMap::new(), vec![id]);
    while let Some(id) = open.pop() {
        used.extend(look_at(id, agent).map(|now| (id, now)));
        open.extend(children_of(id));
    }
    used
}

/// What any of its threads has started.
fn children_of(id: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let started = tasks.map(|task| fs::read_to_string(task.path().join("children")));
    let started: Vec<String> = started.filter_map(Result::ok).collect();
    started.iter().flat_map(|ids| ids.split_whitespace()).filter_map(|id| id.parse().ok()).collect()
}

fn look_at(id: u32, agent: &Path) -> Option<Used> {
    let nanos = nanos_of(id, |_| true)?;
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    let exe = fs::read_link(format!("/proc/{id}/exe")).ok()?;
    let is_agent = agent.canonicalize().is_ok_and(|agent| agent == exe);
    Some(Used { nanos, peak_mib: peak.unwrap_or(0.0) / 1_024.0, is_agent })
}

/// CPU time of those threads of a process whose name is one that is looked for.
pub(crate) fn nanos_of(id: u32, is_wanted: impl Fn(&str) -> bool) -> Option<u64> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{id}/task")).ok()?.flatten() {
        let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if is_wanted(read("comm").trim_end()) {
            let times = read("schedstat");
            nanos += times.split(' ').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    Some(nanos)
}
