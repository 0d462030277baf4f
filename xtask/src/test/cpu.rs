//! CPU time of child processes.

use std::fs;

/// Returns the CPU time, in seconds, of all descendants that have ended and that their parent has
/// waited for. Processes whose parent was killed, as in the crash tests, are not included.
pub(super) fn of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    ticks(&stat) as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Adds up `cutime` and `cstime`, the fields 16 and 17 of proc(5). The second field is the name of
/// the program in parentheses, which may contain spaces.
fn ticks(stat: &str) -> u64 {
    let Some((_, fields)) = stat.rsplit_once(')') else { return 0 };
    fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn the_time_of_children_is_read_whatever_the_program_is_called() {
        let stat = "42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 300 45 20 0 1";
        assert_eq!(ticks(stat), 345);
        assert_eq!(ticks(""), 0);
    }
}
