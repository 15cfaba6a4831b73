//! The descriptors by which 2.0.x tells its streams apart: what the numbers of its sockets would be.

/// The first that the three standard ones leave free.
const FIRST: u32 = 3;

/// Gives each stream the lowest number that is free, as the kernel does.
#[derive(Debug)]
pub struct Descriptors {
    /// Where a server listens.
    listening: Option<u32>,
    /// Whether the socket that listened becomes the client's, and another listens on: a UDP server's.
    is_handed_over: bool,
}

impl Descriptors {
    /// Of a client or of a server.
    pub fn new(is_client: bool, is_udp: bool) -> Self {
        Descriptors {
            listening: (!is_client).then_some(FIRST),
            is_handed_over: is_udp,
        }
    }

    /// The number of a new stream beside those that are open.
    pub fn next(&mut self, open: impl Iterator<Item = u32>) -> u32 {
        let mut taken: Vec<u32> = open.chain(self.listening).collect();
        taken.sort_unstable();
        let mut free = FIRST;
        for number in taken {
            if number == free {
                free += 1;
            }
        }
        match &mut self.listening {
            Some(listening) if self.is_handed_over => std::mem::replace(listening, free),
            _ => free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_taken() {
        let mut client = Descriptors::new(true, false);
        assert_eq!(client.next([].into_iter()), 3);
        assert_eq!(client.next([3, 5].into_iter()), 4);
        let mut server = Descriptors::new(false, false);
        assert_eq!(server.next([].into_iter()), 4);
        assert_eq!(server.next([4].into_iter()), 5);
        assert_eq!(server.next([5].into_iter()), 4);
    }

    #[test]
    fn a_udp_server_gives_away_the_socket_that_it_listened_on() {
        let mut server = Descriptors::new(false, true);
        assert_eq!(server.next([].into_iter()), 3);
        assert_eq!(server.next([3].into_iter()), 4);
        // The first two are gone; 5 listens.
        assert_eq!(server.next([].into_iter()), 5);
        assert_eq!(server.next([5].into_iter()), 3);
    }
}
