//! Cycles of a directed graph.

/// The strongly connected components, each after everything it leads to. Not recursive, because
/// a chain may have any length.
pub(super) fn components(follows: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut search = Search {
        seen_at: vec![0; follows.len()],
        lowest: vec![0; follows.len()],
        settled: vec![false; follows.len()],
        open: vec![],
        clock: 0,
        found: vec![],
    };
    for node in 0..follows.len() {
        if search.seen_at[node] == 0 {
            search.from(node, follows);
        }
    }
    search.found
}

/// Whether a component is more than one node without a way back to itself.
pub(super) fn is_cyclic(component: &[u32], follows: &[Vec<u32>]) -> bool {
    component.len() > 1 || component.iter().any(|node| follows[*node as usize].contains(node))
}

/// Tarjan's search.
struct Search {
    /// From 1; 0 means not yet.
    seen_at: Vec<u32>,
    lowest: Vec<u32>,
    settled: Vec<bool>,
    open: Vec<u32>,
    clock: u32,
    found: Vec<Vec<u32>>,
}

impl Search {
    fn from(&mut self, start: usize, follows: &[Vec<u32>]) {
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        self.enter(start);
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            if let Some(to) = follows[node].get(*next) {
                *next += 1;
                let to = *to as usize;
                if self.seen_at[to] == 0 {
                    self.enter(to);
                    path.push((to, 0));
                } else if !self.settled[to] {
                    self.lowest[node] = self.lowest[node].min(self.seen_at[to]);
                }
                continue;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                self.lowest[*before] = self.lowest[*before].min(self.lowest[node]);
            }
            if self.lowest[node] == self.seen_at[node] {
                self.close(node);
            }
        }
    }

    fn enter(&mut self, node: usize) {
        self.clock += 1;
        self.seen_at[node] = self.clock;
        self.lowest[node] = self.clock;
        self.open.push(u32::try_from(node).unwrap_or(u32::MAX));
    }

    fn close(&mut self, root: usize) {
        let mut component = vec![];
        while let Some(node) = self.open.pop() {
            self.settled[node as usize] = true;
            component.push(node);
            if node as usize == root {
                break;
            }
        }
        self.found.push(component);
    }
}

/// Nodes to which a way from `start` comes back; every cycle it can get into has one of them.
pub(super) fn returns(follows: &[Vec<u32>], start: u32) -> Vec<u32> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        OnTheWay,
        Left,
    }
    let mut seen = vec![Seen::Never; follows.len()];
    let mut found = vec![];
    let mut path = vec![(start, 0)];
    seen[start as usize] = Seen::OnTheWay;
    while let Some((node, next)) = path.last_mut() {
        let Some(to) = follows[*node as usize].get(*next).copied() else {
            seen[*node as usize] = Seen::Left;
            path.pop();
            continue;
        };
        *next += 1;
        match seen[to as usize] {
            Seen::Never => {
                seen[to as usize] = Seen::OnTheWay;
                path.push((to, 0));
            }
            Seen::OnTheWay => found.push(to),
            Seen::Left => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
