//! The decisions of Surehand, as pure functions over values.
//!
//! Nothing here touches files, clocks, randomness, SQL, threads or a protocol. [`plan`] turns what a session has seen
//! ([`View`]), the current file ([`Present`]) and an edit into a [`Planned`] change or a [`Refusal`]; [`render`]
//! writes every word that a model reads about it.
//!
//! ```
//! use surehand_core::{
//!     Limits, Policy, Present, RefusalCode, RelPath, Target, Text, View, edit::replace::Replace, gate::Tracking, plan,
//! };
//!
//! let seen = Text::new("one\ntwo\n".into()).expect("valid text");
//! let now = Present::Text(Text::new("zero\none\ntwo\n".into()).expect("valid text"));
//! let view = View::whole(&seen);
//! let (path, policy, limits) = (RelPath::new("a.txt")?, Policy::default(), Limits::default());
//! let tracking = Tracking::Seen { view: &view, text: Some(&seen), provenance: None };
//! let target = Target { path: &path, tracking, present: &now, policy: &policy, limits: &limits };
//!
//! let refusal = plan::edit_file(&target, &Replace { old: "two", new: "2", all: false }).unwrap_err();
//! assert_eq!(refusal.code(), RefusalCode::Stale);
//! assert!(refusal.to_string().contains("1|zero"), "it shows what changed");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod attribution;
mod confusables;
pub mod content;
pub mod edit;
pub mod encoding;
pub mod excerpt;
pub mod file_diff;
pub mod file_kind;
mod file_list;
pub mod forecast;
pub mod gate;
pub mod hash;
mod ids;
pub mod instructions;
pub mod line_map;
mod line_numbers;
pub mod lines;
pub mod merge3;
pub mod notice;
pub mod outcome;
pub mod path;
mod path_pattern;
pub mod plan;
pub mod policy;
mod proof;
pub mod rebase;
pub mod refusal;
pub mod render;
pub mod repo_state;
pub mod shell;
pub mod short_diff;
pub mod stamp;
pub mod text;
mod text_sink;
pub mod timestamp;
pub mod tokens;
mod tool;
pub mod tracked;
pub mod undo;
pub mod view;
pub mod visible;
pub mod working_set;

pub use content::{Blob, Content};
pub use edit::Edit;
pub use excerpt::KnownLines;
pub use file_list::FileList;
pub use forecast::{Collision, Forecast};
pub use gate::{Present, Target};
pub use hash::{Anchor, ContentHash, ContentHasher, LineHash};
pub use ids::{ChangeId, SessionId};
pub use line_map::{Hunk, LineMap};
pub use lines::{LineNo, LineRange, LineSet};
pub use notice::{ChangeAuthor, ChangedFile, LostClaimOn, Notice};
pub use outcome::{Done, Outcome};
pub use path::RelPath;
pub use path_pattern::{BadPattern, PathPattern};
pub use plan::{FileAction, Planned};
pub use policy::{ContextMode, Limits, OnChange, OnOverlap, Policy};
pub use refusal::{Cause, Refusal, RefusalCode, Remap};
pub use repo_state::{FileState, FileStatus, RepoState, SharedTask, SharedTaskList, Task, TaskList, TaskOwner, TaskStatus};
pub use stamp::Stamp;
pub use text::Text;
pub use tool::{EditDialect, Tool, ToolKind, ToolNames};
pub use tracked::{FileRecord, Touch};
pub use view::{OutsideState, View};
pub use working_set::WorkingSet;
