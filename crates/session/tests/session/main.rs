//! Sessions from the outside: on the double that forgets what was not synced, and on a real disk.

#[cfg(test)]
mod big_values;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod disk_tests;
#[cfg(test)]
mod files;
#[cfg(test)]
mod fork;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod keep;
#[cfg(test)]
mod lock;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod support;
