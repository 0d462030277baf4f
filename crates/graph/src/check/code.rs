//! The kinds of problems, each under a number that never changes its meaning.

use std::fmt;

use serde::{Serialize, Serializer};

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The graph is not run.
    Error,
    /// It can be run, but is probably not what was meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// What kind of problem it is. `docs/problems.md` has a line on each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    text: &'static str,
    severity: Severity,
    meaning: &'static str,
}

impl Code {
    /// Every kind there is, by number.
    pub fn all() -> &'static [Self] {
        Self::ALL
    }

    /// The code as it is shown and looked up: `ATM101`.
    pub fn as_str(self) -> &'static str {
        self.text
    }

    /// What it means, in one line.
    pub fn explain(self) -> &'static str {
        self.meaning
    }

    /// How bad every problem of this kind is.
    pub fn severity(self) -> Severity {
        self.severity
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text)
    }
}

macro_rules! codes {
    ($($name:ident $text:literal $severity:ident $meaning:literal)*) => {
        impl Code {
            $(
                #[doc = $meaning]
                pub const $name: Self =
                    Self { text: $text, severity: Severity::$severity, meaning: $meaning };
            )*
            const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

// A number is never used for anything else, not even when nothing is found under it any more.
codes! {
    EMPTY_GRAPH "ATM101" Error "A graph has no nodes."
    START_MISSING "ATM102" Error "The start node does not exist."
    DUPLICATE_NODE "ATM103" Error "Two nodes of a graph have the same id."
    EDGE_FROM_MISSING "ATM104" Error "An edge comes from a node that does not exist."
    EDGE_TO_MISSING "ATM105" Error "An edge leads to a node that does not exist."
    EDGE_FROM_NOWHERE "ATM106" Error "An edge comes from nowhere."
    EDGE_FROM_TWICE "ATM107" Error "An edge waits for the same node twice."
    UNREACHABLE "ATM108" Error "Nothing leads to a node."
    BAD_ID "ATM109" Error "An id is empty or has characters that the names of steps need."

    GOTO_MISSING "ATM201" Error "A declared goto target does not exist."
    ON_ERROR_MISSING "ATM202" Error "The node to go to after a failure does not exist."
    ON_REVIVE_MISSING "ATM203" Error "The node to go to on resume does not exist."
    CATCH_MISSING "ATM204" Error "The node that catches failures does not exist."
    TARGET_TWICE "ATM205" Warning "A goto target is declared twice."
    DECISION_TARGETS "ATM206" Warning "A decision declares goto targets, but never returns a goto."

    DECISION_WITHOUT_EDGES "ATM211" Error "A decision leads nowhere."
    DECISION_WITHOUT_OTHERWISE "ATM212" Warning "A decision may find that no condition holds."
    DECISION_PLAIN_EDGE "ATM213" Error "An edge that leaves a decision has no condition."
    OTHERWISE_NOT_LAST "ATM214" Error "Conditions stand behind an `otherwise`."
    CONDITIONAL_JOIN "ATM215" Error "An edge that waits for several nodes has a condition."
    CONDITION_NODE_MISSING "ATM216" Warning "A condition looks at the output of an unknown node, or of one that never runs before."
    CONDITION_KEY_MISSING "ATM217" Warning "A condition looks at a key that nothing sets."
    TEXT_NODE_MISSING "ATM218" Error "A text is filled with the output of an unknown node, or of one that has not run then."
    TEXT_KEY_MISSING "ATM219" Error "A text is filled with a key that nothing sets."
    EXCLUSIVE_JOIN "ATM220" Error "An edge waits for nodes of which only one is ever chosen."

    LOOP_WITHOUT_END "ATM301" Error "A loop has neither a limit nor an `until`."
    CYCLE_WITHOUT_END "ATM302" Error "Nodes go round for ever."
    CYCLE_WITHOUT_LIMIT "ATM303" Warning "Nodes may go round, and nothing limits how often."
    NO_ATTEMPTS "ATM311" Error "A node is tried zero times."
    BAD_FACTOR "ATM312" Error "The wait between attempts grows by an impossible factor."
    ZERO_TIMEOUT "ATM313" Error "A time-out is zero."
    ZERO_VISITS "ATM314" Error "A node may be visited zero times."
    ZERO_WORKERS "ATM315" Error "A fan has zero workers."
    ZERO_ITERATIONS "ATM316" Error "The nodes of a graph may be visited zero times."
    ZERO_CONCURRENCY "ATM317" Error "Zero steps may run at once."
    ZERO_STEPS "ATM318" Error "A run may take zero steps."

    UNKNOWN_AGENT "ATM401" Error "An agent does not exist."
    UNKNOWN_SKILL "ATM402" Error "A skill does not exist."
    UNKNOWN_COMMAND "ATM403" Error "A command does not exist."
    UNKNOWN_WORKFLOW "ATM404" Error "A workflow does not exist."
    UNKNOWN_FUNCTION "ATM405" Error "A function does not exist."
    UNKNOWN_MODEL "ATM406" Warning "A model is not known."
    CIRCULAR_WORKFLOWS "ATM407" Error "Workflows use each other in a circle."

    BRANCH_WRITES "ATM501" Error "Branches that run at once replace the same value."
    ITEM_WRITES "ATM502" Error "Items that run at once replace the same value."
    STEP_WRITES "ATM503" Error "Nodes that run at once replace the same value."
    POSSIBLE_WRITES "ATM504" Warning "What runs at once may replace the same value."
    RESERVED_KEY "ATM505" Error "The key `outputs` belongs to the engine."
    ITEM_HIDES_LIST "ATM506" Error "The item of a fan hides the list it comes from."
    NO_BRANCHES "ATM511" Error "A parallel node has no branches."
    DUPLICATE_BRANCH "ATM512" Error "Two branches have the same id."
    FAIL_FAST_UNUSED "ATM513" Warning "Failing fast has no meaning where only one branch is waited for."
    BAD_SCHEMA "ATM521" Error "A schema is not a JSON Schema."
    BAD_COUNT "ATM531" Error "The key of a number begins with something else."
    BAD_LIST "ATM532" Error "The key of a list begins with something else."
    KEY_MISSING "ATM533" Error "Nothing sets the key of a number or of a list."
    BAD_VALUE "ATM534" Error "A value cannot be combined by the reducer of its key."
    OUTPUT_HIDDEN "ATM535" Warning "An output is that of another node with the same id."
    UNSAFE_TEMPLATE "ATM541" Error "A template stands where its value would be run as code."
}
