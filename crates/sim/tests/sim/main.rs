//! Whole runs: what they come to by hand, by the rules of each discipline, and by shapes that were published.

mod arithmetic;
mod common;
mod disciplines;
mod path;
mod processors;
mod shapes;
mod tcp;
mod ticks;
mod words;
mod work;
mod workloads;
