//! Errors name the right things and give advice that works.

mod errors;
mod wrong_context;
