//! The helper against real boards, with callers in this process.

mod helper;
