//! The fit of published hosts as text.

use nicpoll_model::sim::SimFit;

/// Renders a fit: each group with its error and its factors.
pub fn render_sim_fit(fit: &SimFit) -> String {
    let groups = || fit.sets.iter().flatten();
    let parameters: usize = groups().map(|it| it.factors.len()).sum();
    let figures: u64 = groups().map(|it| it.figures).sum();
    let mut text = format!(
        "{parameters} parameters, fitted to {figures} figures under interrupts. Factors are on the costs of fit.toml.\n"
    );
    for group in groups() {
        let plural = if group.factors.len() == 1 { "" } else { "s" };
        text.push_str(&format!(
            "\n{}: {} parameter{plural}, {} figures; root mean square error {:.2} (1 is 2 % of a rate or 5 % of a \
             share); {} simulations\n",
            group.name,
            group.factors.len(),
            group.figures,
            group.error_ratio,
            group.simulations
        ));
        for factor in &group.factors {
            let times = factor.thousandths as f64 / 1e3;
            text.push_str(&format!("  {:<12} x {times:.3}\n", factor.name));
        }
    }
    text
}
