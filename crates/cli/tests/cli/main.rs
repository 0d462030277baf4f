//! The real binary, as a user runs it.
#![expect(
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a helper that fails fails its test"
)]

mod acp;
mod acp_both;
mod acp_client;
mod acp_edges;
mod agents;
mod agree;
mod backends;
mod ceilings;
mod crash;
mod crash_case;
mod crash_night;
mod crash_rules;
mod crash_scene;
mod crash_typescript;
mod demo;
mod disk;
mod doctor;
mod engine;
mod engine_agents;
mod engine_asking;
mod engine_backends;
mod engine_ceilings;
mod engine_check;
mod engine_crash;
mod engine_crash_more;
mod engine_errors;
mod engine_launches;
mod engine_limits;
mod engine_meaning;
mod engine_times;
mod engine_wrong;
mod env;
mod files;
mod fork;
mod gates;
mod golden;
mod guards;
mod hostile;
mod migrate;
mod migrate_kept;
mod orphans;
mod output;
mod plan;
mod process;
mod question;
mod real_agents;
mod registry;
mod restrictions;
mod scene;
mod session_attacked;
mod session_moved;
mod session_place;
mod sessions;
mod settings;
mod shared_folder;
mod sharing;
mod shell_templates;
mod silent_changes;
mod strange_files;
mod strange_sessions;
mod stream;
mod task_lists;
mod terminal;
mod trust;
mod trust_changes;
mod trust_more;
mod turn;
mod typescript;
mod typescript_described;
mod typescript_errors;
mod typescript_forgotten;
mod typescript_functions;
mod typescript_mended;
mod typescript_resumed;
mod typescript_strangers;
mod typescript_trust;
mod usage;
mod verified;
mod verified_definitions;
mod verified_more;
