//! The suites that need real processes, in one binary so that they link once.

#[cfg(test)]
mod acp;
mod guard;
#[cfg(test)]
mod model;
#[cfg(test)]
mod model_client;
#[cfg(test)]
mod model_dialect;
#[cfg(test)]
mod model_dialects;
#[cfg(test)]
mod model_openai;
#[cfg(test)]
mod model_scripts;
mod oracle;
mod oracle_graphs;
#[cfg(test)]
mod real_agents;
mod runner;
mod runner_backends;
mod runner_batches;
mod runner_crash;
mod runner_disk;
mod runner_fork;
mod runner_functions;
mod runner_limits;
mod runner_lost;
mod runner_mappers;
mod runner_pause;
mod runner_providers;
mod runner_scripts;
mod runner_snapshots;
mod runner_stand;
mod runner_stream;
mod runner_upgrade;
mod runner_work;
mod script;
