//! What a client may read and subscribe to: the state of the repository and its tasks.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ErrorData,
    model::{ReadResourceResult, Resource, ResourceContents, SubscriptionFilter},
};
use serde_json::json;
use surehand_engine::{RepoTracker, Workspace, core::render::snapshot::format_for_prompt};
use tokio::sync::broadcast;

/// The state of the repository as a model gets it.
const SNAPSHOT: &str = "surehand://snapshot";

/// What there is to do, for programs.
const TASKS: &str = "surehand://tasks";

/// All resources, in order: address, name, kind of text, description.
const ALL: [(&str, &str, &str, &str); 2] = [
    (SNAPSHOT, "snapshot", "text/markdown", "Open tasks, changed files and the rest in counts, in a few hundred tokens"),
    (TASKS, "tasks", "application/json", "All tasks with their numbers, status and priority"),
];

/// What was touched by a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched {
    /// Nothing that is shown here.
    Nothing,
    /// Files.
    Files,
    /// Tasks, and with them the snapshot.
    Tasks,
}

/// The resources of a server and who wants to hear of them.
pub struct Resources {
    workspace: Arc<Workspace>,
    /// The addresses that the client subscribed to, the old way.
    subscribed: Mutex<BTreeSet<String>>,
    /// Addresses whose content has changed, for those who listen, the new way.
    changed: broadcast::Sender<&'static str>,
}

impl Resources {
    /// The resources of a workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, subscribed: Mutex::default(), changed: broadcast::channel(64).0 }
    }

    /// What there is.
    pub fn list(&self) -> Vec<Resource> {
        let resource = |(uri, name, kind, description): (&str, &str, &str, &str)| {
            Resource::new(uri, name).with_description(description).with_mime_type(kind)
        };
        ALL.map(resource).into()
    }

    /// The content of one.
    pub fn read(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let Some((uri, _, kind, _)) = ALL.iter().find(|(known, ..)| *known == uri) else { return Err(unknown(uri)) };
        let state = RepoTracker::load(self.workspace.clone()).snapshot();
        let text = match *uri {
            SNAPSHOT => format_for_prompt(&state),
            _ => format!("{:#}\n", json!({ "story_id": state.story_id, "tasks": state.tasks })),
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, *uri).with_mime_type(*kind)]))
    }

    /// Whether there is such a resource, and remembers that the client wants to hear of it, or not any more.
    pub fn subscribe(&self, uri: &str, wanted: bool) -> Result<(), ErrorData> {
        if !ALL.iter().any(|(known, ..)| *known == uri) {
            return Err(unknown(uri));
        }
        let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted {
            subscribed.insert(uri.to_owned());
        } else {
            subscribed.remove(uri);
        }
        Ok(())
    }

    /// What of a wish can be granted: news of our resources.
    pub fn accept(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let wanted = requested.resource_subscriptions.iter().flatten();
        let ours = wanted.filter(|uri| ALL.iter().any(|(known, ..)| known == uri)).cloned().collect();
        let mut accepted = SubscriptionFilter::new();
        accepted.resource_subscriptions = Some(ours);
        accepted
    }

    /// Hears of what changes from now on.
    pub fn listen(&self) -> broadcast::Receiver<&'static str> {
        self.changed.subscribe()
    }

    /// Tells those who listen, and gives the addresses that the client subscribed to and must be told about.
    pub fn touch(&self, touched: Touched) -> Vec<&'static str> {
        let changed: &[&'static str] = match touched {
            Touched::Nothing => return Vec::new(),
            Touched::Files => &[SNAPSHOT],
            Touched::Tasks => &[SNAPSHOT, TASKS],
        };
        for uri in changed {
            // Nobody listening is not an error.
            let _ = self.changed.send(uri);
        }
        let subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.iter().copied().filter(|uri| subscribed.contains(*uri)).collect()
    }
}

fn unknown(uri: &str) -> ErrorData {
    let uri: String = uri.chars().take(100).collect();
    let known: Vec<&str> = ALL.iter().map(|(known, ..)| *known).collect();
    ErrorData::resource_not_found(format!("there is no resource {uri:?}; there are {}", known.join(", ")), None)
}
