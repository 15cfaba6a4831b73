//! Plots as SVG: one vocabulary of axes, colours and marks for drawings within a page and for files of their own.
//!
//! Read `svg` first (what every drawing is made of), then `axis`. `curves` draws figures over two axes, `strips` names
//! with a strip below each, `chart` a file with panels of curves.

pub mod axis;
pub mod chart;
pub mod curves;
pub mod strips;
pub mod svg;
