//! The doors of Surehand that speak somebody else's protocol. They translate and decide nothing.

mod ancestry;
pub mod hooks;
pub mod mcp;
