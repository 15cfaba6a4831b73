//! Which colour a setting or a discipline has.
//!
//! What must hold: a discipline has the same colour wherever it is drawn, and no two of one plot share one while there
//! are colours left. Interrupts are warm, polling is cool: FreeBSD's in the lighter, Linux's in the stronger colour.

/// Okabe and Ito's colours, which colour-blind readers can tell apart; the yellow is left out.
pub const COLOURS: [&str; 7] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
];

/// Names with a colour of their own. The demo says `interrupt` and `polling` for `napi` and `napi-timer`.
const NAMED: [(&str, usize); 8] = [
    ("interrupt", 0),
    ("napi", 0),
    ("polling", 1),
    ("napi-timer", 1),
    ("busy-poll", 2),
    ("freebsd-polling", 4),
    ("freebsd-interrupt", 5),
    ("default", 6),
];

/// The colour of each name of a plot, as an index of [`COLOURS`]. A discipline's options do not change its colour
/// unless it stands there twice.
pub fn colours(names: &[&str]) -> Vec<usize> {
    let own = |name: &str| {
        let bare = name.split(':').next().unwrap_or(name);
        let mut named = NAMED.iter();
        named.find(|(known, _)| *known == bare).map(|(_, own)| *own)
    };
    let mut taken = [false; COLOURS.len()];
    let mut given: Vec<Option<usize>> = names
        .iter()
        .map(|name| {
            let own = own(name).filter(|colour| !taken[*colour])?;
            taken[own] = true;
            Some(own)
        })
        .collect();
    for (index, colour) in given.iter_mut().enumerate() {
        if colour.is_none() {
            let free = taken.iter().position(|is_taken| !is_taken);
            let next = free.unwrap_or(index % COLOURS.len());
            taken[next] = true;
            *colour = Some(next);
        }
    }
    given.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discipline_keeps_its_colour_whatever_stands_beside_it() {
        let among = |names: &[&str], name: &str| {
            let at = names.iter().position(|it| *it == name).unwrap();
            COLOURS[colours(names)[at]]
        };
        let demo = ["default", "interrupt", "polling"];
        let sim = [
            "freebsd-interrupt",
            "freebsd-polling:user_frac=0",
            "napi",
            "napi-timer",
        ];
        assert_eq!(among(&demo, "polling"), among(&["polling"], "polling"));
        assert_eq!(among(&demo, "polling"), among(&sim, "napi-timer"));
        assert_eq!(among(&demo, "interrupt"), among(&sim, "napi"));
        assert_eq!(colours(&["bsd", "share"]), [0, 1]);
    }

    #[test]
    fn no_two_share_a_colour_while_there_are_colours_left() {
        let names = ["polling", "napi-timer", "a", "b", "c", "d", "e"];
        let mut given = colours(&names);
        given.sort_unstable();
        assert_eq!(given, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(colours(&["x"; 9]).len(), 9);
    }
}
