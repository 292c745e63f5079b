//! Devices and their contexts.

mod contexts;
mod devices;
