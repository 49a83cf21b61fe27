//! Hooks: an agent asks before each of its own tool calls and reports after it. A hook is a short-lived process; it
//! keeps all its knowledge in the state of the workspace. If Surehand fails, the call passes.

mod clients;
pub(crate) mod conversation;
mod edits;
mod event;
mod handle;
mod patch;
mod pending_notes;
mod prompt_files;
mod search_hits;
mod transcript;
mod truncation;
mod workspaces;

use serde_json::Value;
use surehand_engine::SessionId;

use self::{
    clients::ClientAdapter,
    event::{HookEvent, HookInput, ToolUse},
    handle::{HookCall, HookVerdict},
    workspaces::SessionWorkspaces,
};
pub use self::{
    clients::{HookAnswer, HookClient, HookSession, opencode_plugin, with_goose_environment},
    workspaces::{HookEnvironment, OpenedWorkspace},
};
use crate::session_roots::SessionRoots;

/// Answers a hook. `event` names the event for a client that does not send it. Files outside of every workspace are not
/// guarded.
pub fn answer(client: HookClient, event: Option<&str>, input: &str, environment: &HookEnvironment<'_>) -> HookAnswer {
    let mut input: Value = match serde_json::from_str(input) {
        Ok(input) => input,
        Err(error) => return client.fail(format!("the input is not JSON: {error}")),
    };
    let Some(fields) = input.as_object_mut() else { return client.fail("the input is not a JSON object") };
    let adapter = client.adapter();
    if let (Some(event), false) = (event, fields.contains_key(adapter.event_field)) {
        fields.insert(adapter.event_field.to_owned(), event.into());
    }
    let Some(hook) = adapter.parse(&input) else { return client.reject_input(&input) };
    if matches!(hook.event, HookEvent::Before(ToolUse::Read | ToolUse::Search { .. })) {
        // A read needs no permission, and pending notes can wait for its result.
        return client.pass();
    }
    let agent = hook.agent.as_ref().map(|agent| format!("-{agent}")).unwrap_or_default();
    let id = SessionId(format!("{}-{}{agent}", client.name(), hook.session));
    let adds_context = input[adapter.event_field].as_str().is_some_and(|event| adapter.context_events.contains(&event));
    let (verdict, troubles, session) = match SessionWorkspaces::open(environment, id.clone(), &hook.directory) {
        Ok(mut workspaces) => {
            if matches!(hook.event, HookEvent::Starts(_)) && hook.agent.is_none() {
                conversation::enter(workspaces.home().workspace(), &id);
            }
            let names = (adapter.names)();
            let verdict = HookCall { workspaces: &mut workspaces, input: &hook, adapter, names }.handle(adds_context);
            let troubles = std::mem::take(&mut workspaces.troubles);
            let home = workspaces.home().workspace().path().to_owned();
            workspaces.close();
            (verdict, troubles, Some(HookSession { session: id.clone(), home }))
        }
        Err(why) => (HookVerdict::Pass, vec![format!("cannot guard this session: {why}")], None),
    };
    let failed = (!troubles.is_empty()).then(|| troubles.join("; "));
    // Every client shows the model the reason of a denial.
    let adds_context = adds_context || matches!(verdict, HookVerdict::Deny(_));
    let warning = if adds_context { warning(&troubles, &hook, &id, environment) } else { None };
    let answer = client.write_answer(&input, with_warning(verdict, warning.as_deref(), adapter), warning.as_deref());
    HookAnswer { failed, session, ..answer }
}

/// Warns the person and the model, once per session, that Surehand does not guard files properly.
fn warning(troubles: &[String], hook: &HookInput, session: &SessionId, environment: &HookEnvironment<'_>) -> Option<String> {
    // If records cannot be written, the warning is shown at each start of a session.
    let is_new = |trouble: &&String| match SessionRoots::can_be_kept(&environment.state) {
        true => SessionRoots::change(&environment.state, session, |roots| roots.show_once(trouble)),
        false => matches!(hook.event, HookEvent::Starts(_)),
    };
    let new: Vec<&str> = troubles.iter().filter(is_new).map(String::as_str).collect();
    (!new.is_empty()).then(|| format!("Surehand {}. `surehand doctor` tells more.\n", new.join("; it ")))
}

fn with_warning(verdict: HookVerdict, warning: Option<&str>, adapter: &ClientAdapter) -> HookVerdict {
    let warning = warning.unwrap_or_default();
    match verdict {
        HookVerdict::Pass if warning.is_empty() => HookVerdict::Pass,
        HookVerdict::Pass => HookVerdict::Context(warning.to_owned()),
        HookVerdict::Context(text) => HookVerdict::Context(format!("{warning}{text}")),
        HookVerdict::Deny(why) => HookVerdict::Deny(format!("{why}{}{warning}", adapter.denial_note)),
    }
}
