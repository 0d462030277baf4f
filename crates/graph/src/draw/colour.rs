//! The colours of the statuses, the same in every format.

use super::overlay::Status;

/// The colours of the inside, the line and the text.
pub(super) type Colours = [&'static str; 3];

/// The colours on a light ground.
pub(super) fn light(status: Status) -> Colours {
    match status {
        Status::Completed => ["#dafbe1", "#1a7f37", "#0b3d17"],
        Status::Skipped => ["#eaeef2", "#6e7781", "#424a53"],
        Status::Waiting => ["#ffffff", "#6e7781", "#24292f"],
        Status::Cancelled => ["#eaeef2", "#57606a", "#424a53"],
        Status::Lost => ["#fff1e5", "#bc4c00", "#5c2500"],
        Status::Failed => ["#ffebe9", "#cf222e", "#7d1018"],
        Status::Running => ["#ddf4ff", "#0969da", "#033d8b"],
        Status::Asking => ["#fbefff", "#8250df", "#3e1f79"],
    }
}

/// The colours on a dark ground.
pub(super) fn dark(status: Status) -> Colours {
    match status {
        Status::Completed => ["#12331c", "#3fb950", "#d2f5da"],
        Status::Skipped => ["#22272e", "#768390", "#adbac7"],
        Status::Waiting => ["#1c2128", "#768390", "#e6edf3"],
        Status::Cancelled => ["#22272e", "#8b949e", "#adbac7"],
        Status::Lost => ["#3a2010", "#f0883e", "#ffdfb6"],
        Status::Failed => ["#3d1518", "#f85149", "#ffdcd7"],
        Status::Running => ["#0c2d50", "#58a6ff", "#cae8ff"],
        Status::Asking => ["#2d1b4e", "#bc8cff", "#eddeff"],
    }
}
