//! Understands the user: the file, what it means, and every fault in it.

pub mod settings;

pub use settings::Settings;
