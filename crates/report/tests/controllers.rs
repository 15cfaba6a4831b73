//! The committed plot of the controllers is what the example draws.

#[path = "../examples/controllers.rs"]
#[expect(dead_code, reason = "its main prints what is compared here")]
mod controllers;

#[test]
fn the_committed_plot_is_what_the_example_draws() {
    let drawn = nicpoll_report::plot_chart(&controllers::chart());
    assert!(
        drawn == include_str!("../../../docs/controllers.svg"),
        "docs/controllers.svg is not what crates/report/examples/controllers.rs draws; run it again"
    );
}
