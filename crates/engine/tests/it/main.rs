//! The tests of this crate that use its public interface, in one binary. `full_disk` and `watch_large` are binaries of
//! their own: one limits its process, the other counts what its process has open.

mod attacks;
mod branch_changes;
mod coarse_file_times;
mod commands;
mod commit;
mod delete_and_move;
mod examples;
mod file_tracker;
mod fixture;
mod fleet_gate;
mod instructions;
mod local_copy;
mod provenance;
mod repo_state;
mod repository_ids;
mod scan;
mod shared_session;
mod shell_reads;
mod stale_views;
mod state_on_other_file_system;
mod stores;
mod trouble;
mod undo;
mod undo_by_lines;
mod undo_histories;
mod undo_real_history;
mod unshowable_files;
