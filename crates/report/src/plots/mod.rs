//! Plots as SVG: axes, colours and marks for drawings within a page and for files of their own.
//!
//! Read `svg` first (the elements of every drawing), then `axis`. `curves` draws figures over two axes, `strips`
//! names with a strip below each, `chart` a file with panels of curves.

pub mod axis;
pub mod chart;
pub mod curves;
pub mod strips;
pub mod svg;
