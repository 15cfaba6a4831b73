//! Whole runs against hand calculations, the rules of each discipline, and published curves.

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
