//! The rules of snake, without a screen or a keyboard.
//!
//! Start reading at [`board`]: everything else happens on it.

pub mod board;
pub mod body;
pub mod food;
pub mod random;
