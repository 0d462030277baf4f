//! The rules of snake, and everything about playing it that needs no terminal.
//!
//! Start reading at [`game::Game::step`]: it is the whole game, one step at a time.

pub mod autopilot;
pub mod board;
pub mod body;
pub mod food;
pub mod game;
pub mod keys;
pub mod random;
pub mod steering;
pub mod view;
