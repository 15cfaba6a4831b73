//! The tables, step by step.

/// One step of the schema, in the words of each database. Both make the same tables and columns.
pub(crate) struct Step {
    pub sqlite: &'static str,
    #[cfg(feature = "postgres")]
    pub postgres: &'static str,
}

/// What takes a store from each version of the schema to the next. Its version is the number of steps that it has
/// seen; steps that were released never change.
pub(crate) const STEPS: [Step; 2] = [
    Step {
        sqlite: include_str!("schema/1.sql"),
        #[cfg(feature = "postgres")]
        postgres: include_str!("schema/1.postgres.sql"),
    },
    Step {
        sqlite: include_str!("schema/2.sql"),
        #[cfg(feature = "postgres")]
        postgres: include_str!("schema/2.postgres.sql"),
    },
];
