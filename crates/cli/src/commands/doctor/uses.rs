//! Tools and models that entities name and nobody has.

use super::entities::remark;
use super::{Known, Remark};
use crate::uses;

pub(super) fn look(known: &Known) -> Vec<Remark> {
    // Also those that others replace: they are meant as soon as those are gone.
    let findings = uses::findings(known.catalog.registry.every());
    let mut remarks: Vec<Remark> =
        findings.iter().map(|finding| remark(finding, &known.catalog)).collect();
    if remarks.is_empty() {
        remarks.push(Remark::fine("every tool and every model that is named can be known"));
    }
    remarks
}
