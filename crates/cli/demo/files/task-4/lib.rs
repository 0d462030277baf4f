//! The rules of snake, without a screen or a keyboard.
//!
//! Start reading at [`game::Game::step`]: it is the whole game, one step at a time.

pub mod board;
pub mod body;
pub mod food;
pub mod game;
pub mod random;
