//! Identifiers.

use atomic_graph::name_type;

name_type!(
    /// One run of one workflow, its folder and its journal: a UUID.
    SessionId
);
name_type!(
    /// A workflow's name, as typed after the slash.
    WorkflowName
);
name_type!(
    /// A coding agent program Atomic can talk to, such as `claude`.
    BackendId
);
name_type!(
    /// A persona a backend can take on, such as `worker`.
    AgentName
);
name_type!(
    /// A backend's own name for a conversation; with it the conversation can be continued.
    ConversationId
);
name_type!(
    /// A question put to the user.
    QuestionId
);
