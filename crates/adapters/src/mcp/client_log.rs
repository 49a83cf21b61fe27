//! Sends warnings to the client's log, if it asked for that level.
#![expect(deprecated, reason = "the newest revision dropped logging, but the others have it")]

use rmcp::{
    Peer, RoleServer,
    model::{LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam, ServerNotification},
    service::RequestContext,
};
use serde_json::Value;

/// Sends a warning if the client asked for this level.
pub(super) async fn warn(text: &str, least: LogLevel, peer: &Peer<RoleServer>) {
    if let Some(warning) = warning(text, least) {
        // The client may be gone.
        let _ = peer.send_notification(warning).await;
    }
}

pub(super) fn warning(text: &str, least: LogLevel) -> Option<ServerNotification> {
    let message = LoggingMessageNotificationParam::new(LoggingLevel::Warning, Value::from(text)).with_logger("surehand");
    let warning = ServerNotification::LoggingMessageNotification(LoggingMessageNotification::new(message));
    (least <= LogLevel::WARNING).then_some(warning)
}

/// A log level, as its index in the protocol's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogLevel(u8);

impl LogLevel {
    pub(super) const WARNING: LogLevel = LogLevel(LoggingLevel::Warning as u8);
    const NEVER: LogLevel = LogLevel(8);

    pub(super) fn of(level: LoggingLevel) -> Self {
        LogLevel(level as u8)
    }

    /// The level that a call asks for by the newest revision, in which a call without a level gets no log messages.
    pub(super) fn asked_for(context: &RequestContext<RoleServer>) -> Option<Self> {
        let asked = context.meta.log_level().map(LogLevel::of);
        let is_new = context.meta.protocol_version().is_some();
        asked.or_else(|| is_new.then_some(LogLevel::NEVER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_in_the_order_of_the_protocol() {
        use LoggingLevel::{Alert, Critical, Debug, Emergency, Error, Info, Notice, Warning};
        let levels = [Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency].map(LogLevel::of);
        assert!(levels.is_sorted() && levels[7] < LogLevel::NEVER, "{levels:?}");
        assert_eq!(levels[3], LogLevel::WARNING);
    }
}
