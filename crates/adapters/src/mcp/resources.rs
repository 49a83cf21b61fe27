//! The resources that a client may read and subscribe to: the state of the repository, its tasks, and the last changes.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{ReadResourceResult, Resource, ResourceContents, ResourceUpdatedNotificationParam, SubscriptionFilter},
};
use serde_json::json;
use surehand_engine::{
    Done, Outcome, TaskScope, ToolNames, Workspace,
    change_log::{LoggedChange, what_happened},
    render::snapshot::format_for_prompt,
    repo_state::rfc3339,
    store::{EventFilter, StoreError},
};
use tokio::sync::broadcast;

use super::sessions::lock;

/// The state of the repository, as models read it.
const SNAPSHOT: &str = "surehand://snapshot";

const TASKS: &str = "surehand://tasks";

const JOURNAL: &str = "surehand://journal";

const MOST_CHANGES: usize = 50;

/// All resources, in order: address, name, kind of text, description.
const ALL: [(&str, &str, &str, &str); 3] = [
    (SNAPSHOT, "snapshot", "text/markdown", "Open tasks, changed files and the rest in counts, in a few hundred tokens"),
    (TASKS, "tasks", "application/json", "All tasks with their numbers, status and priority"),
    (JOURNAL, "journal", "text/plain", "The last changes: when, with which tool, by which session, to which files"),
];

/// The addresses of the resources that a call has changed.
pub(super) fn changed_by(outcome: &Outcome) -> &'static [&'static str] {
    match &outcome.result {
        Ok(Done::Changed(_)) => &[SNAPSHOT, JOURNAL],
        Ok(Done::Tasks(_)) => &[SNAPSHOT, TASKS],
        _ => &[],
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResourceChange {
    pub uri: &'static str,
    /// The number of the connection that changed it.
    pub by: u64,
}

pub(super) struct Resources {
    names: ToolNames,
    changed: broadcast::Sender<ResourceChange>,
}

impl Resources {
    pub(super) fn new(names: ToolNames) -> Self {
        Self { names, changed: broadcast::channel(64).0 }
    }

    pub(super) fn list(&self) -> Vec<Resource> {
        let resource = |(uri, name, kind, description): (&str, &str, &str, &str)| {
            Resource::new(uri, name).with_description(description).with_mime_type(kind)
        };
        ALL.map(resource).into()
    }

    pub(super) fn read(&self, workspace: &Arc<Workspace>, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let Some((uri, _, kind, _)) = ALL.iter().find(|(known, ..)| *known == uri) else { return Err(unknown(uri)) };
        let state = || workspace.snapshot_for(&TaskScope::of_any_session());
        let text = match *uri {
            SNAPSHOT => format_for_prompt(&state(), &self.names),
            TASKS => {
                let state = state();
                format!(
                    "{:#}\n",
                    json!({ "story_id": state.tasks.story, "tasks": state.tasks.tasks, "tasks_of_others": state.tasks.of_others })
                )
            }
            _ => journal(workspace).map_err(|error| ErrorData::internal_error(error.to_string(), None))?,
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, *uri).with_mime_type(*kind)]))
    }

    /// The part of a subscription that can be served: our own resources.
    pub(super) fn accept(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let wanted = requested.resource_subscriptions.iter().flatten();
        let accepted_uris = wanted.filter(|uri| ALL.iter().any(|(known, ..)| known == uri)).cloned().collect();
        let mut accepted = SubscriptionFilter::new();
        accepted.resource_subscriptions = Some(accepted_uris);
        accepted
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<ResourceChange> {
        self.changed.subscribe()
    }

    pub(super) fn announce(&self, uri: &'static str, by: u64) {
        // It fails if no client listens.
        let _ = self.changed.send(ResourceChange { uri, by });
    }
}

/// The subscriptions of one connection, by the older revisions.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    addresses: Mutex<BTreeSet<String>>,
    is_passed_on: AtomicBool,
}

impl Subscriptions {
    /// Adds a subscription. Returns whether it is the first, for which the caller must start `pass_on`.
    pub(super) fn add(&self, uri: &str) -> Result<bool, ErrorData> {
        if !ALL.iter().any(|(known, ..)| *known == uri) {
            return Err(unknown(uri));
        }
        lock(&self.addresses).insert(uri.to_owned());
        Ok(!self.is_passed_on.swap(true, Ordering::Relaxed))
    }

    pub(super) fn remove(&self, uri: &str) {
        lock(&self.addresses).remove(uri);
    }

    pub(super) fn has(&self, uri: &str) -> bool {
        lock(&self.addresses).contains(uri)
    }

    /// Passes on changes by other connections while the client is connected. Its own changes are announced before their
    /// answers.
    pub(super) async fn pass_on(&self, mut changed: broadcast::Receiver<ResourceChange>, me: u64, peer: Peer<RoleServer>) {
        loop {
            let news = match changed.recv().await {
                Ok(news) => news,
                // A client that fell behind gets the next change, which is enough.
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            };
            if peer.is_transport_closed() {
                return;
            }
            if news.by != me && self.has(news.uri) {
                // The client may be gone.
                let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(news.uri)).await;
            }
        }
    }
}

fn journal(workspace: &Workspace) -> Result<String, StoreError> {
    let log = workspace.log(&EventFilter::default(), MOST_CHANGES)?;
    if log.is_empty() {
        return Ok("no changes\n".to_owned());
    }
    Ok(log.iter().map(entry).collect())
}

fn entry(change: &LoggedChange) -> String {
    let undone = if change.is_undone { " (undone)" } else { "" };
    let files: String = change.files.iter().map(|file| format!("    {}\n", what_happened(file))).collect();
    format!("{} {} {}{undone}, session {}\n{files}", change.change, rfc3339(change.at), change.tool, change.session)
}

fn unknown(uri: &str) -> ErrorData {
    let uri: String = uri.chars().take(100).collect();
    let known: Vec<&str> = ALL.iter().map(|(known, ..)| *known).collect();
    ErrorData::resource_not_found(format!("there is no resource {uri:?}; there are {}", known.join(", ")), None)
}
