//! Pieces that many workflows have in common.

use atomic_graph::{Count, Key, NodeId};

use super::builder::{Builder, graph};
use super::draft::{Draft, When};
use super::loops::repeat;
use super::regions::{Fan, each};
use crate::typed::ListKeyOf;

/// One node after the other.
pub fn sequential<S: 'static>(nodes: impl IntoIterator<Item = Draft<S>>) -> Builder<S> {
    Builder::from(nodes.into_iter().collect::<Vec<_>>())
}

/// Does the same for every item of a list, then something with all the results.
#[derive(Debug)]
pub struct MapReduce<S> {
    /// The fan's id, under which the results are found.
    pub id: NodeId,
    /// How many items at once; as many as the run has workers if nobody says otherwise.
    pub workers: Count,
    fan: Fan<S>,
    reduce: Draft<S>,
}

impl<S: 'static> MapReduce<S> {
    /// `map` finds its item under `item`; `reduce` finds the results in the output of `map`, the
    /// fan.
    pub fn new(over: impl ListKeyOf<S>, map: impl Into<Builder<S>>, reduce: Draft<S>) -> Self {
        let workers = Count::Key(Key::from(crate::WORKERS));
        Self { id: NodeId::from("map"), workers, fan: Fan::over(over, map), reduce }
    }
}

/// Does the same for every item of a list, then something with all the results.
pub fn map_reduce<S: 'static>(template: MapReduce<S>) -> Builder<S> {
    let MapReduce { id, workers, fan, reduce } = template;
    graph().start(each(id, fan.workers(workers))).then(reduce)
}

/// Works, has it reviewed, and works again until the review is content.
#[derive(Debug)]
pub struct ReviewCycle<S> {
    /// What is done.
    pub work: Builder<S>,
    /// Who looks at it, and puts what was found into the state.
    pub review: Builder<S>,
    /// When it is good enough, asked after every review.
    pub until: When<S>,
    /// The largest number of rounds; 0 means no limit.
    pub max_rounds: u32,
}

/// Works, has it reviewed, and works again until the review is content.
pub fn review_cycle<S: 'static>(template: ReviewCycle<S>) -> Draft<S> {
    let ReviewCycle { work, review, until, max_rounds } = template;
    repeat("review-cycle", work.then(review), until, max_rounds)
}
