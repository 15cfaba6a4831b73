//! Hosts under one virtual clock: makes their machines, runs them in turn, and adds up the figures.
//!
//! A checked [`Simulation`](crate::spec::simulation::Simulation) goes in, its figures come out. [`build`] makes the
//! machines, [`event_loop`] runs them, [`run`] (open it first) does both and adds up the figures. [`processors`] says
//! which machines are the processors of which host.

mod build;
mod event_loop;
mod processors;
pub mod run;
