//! The ids of sessions and changes, and a macro that defines such id types.

/// Defines id types that wrap a string.
#[doc(hidden)]
#[macro_export]
macro_rules! string_ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

string_ids! {
    /// One model's context window, from its start to its reset.
    SessionId
    /// The id of a change: the effect of one call, on one file or several.
    ChangeId
}
