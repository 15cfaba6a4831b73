//! The numbers in the datagrams of netblast and netsend as ids that never begin anew.

use nicpoll_stats::sequence::Ids;

/// How many numbers there are.
const ROUND: u64 = 1 << 32;

/// Of one sender: a 32-bit big-endian number at the start, which counts from 0 and begins anew after the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetrateIds {
    highest: Option<u64>,
}

impl NetrateIds {
    /// Bytes of the number.
    pub const BYTES: usize = 4;
}

impl Ids for NetrateIds {
    /// ```
    /// use nicpoll_stats::sequence::Ids;
    /// use nicpoll_traffic::netrate::NetrateIds;
    ///
    /// let mut ids = NetrateIds::default();
    /// let mut id = |number: u32| ids.id(&number.to_be_bytes());
    /// let last = id(u32::MAX).unwrap();
    /// assert_eq!((id(0), id(u32::MAX - 1)), (Some(last + 1), Some(last - 1)));
    /// ```
    fn id(&mut self, payload: &[u8]) -> Option<u64> {
        let number = u32::from_be_bytes(*payload.first_chunk()?);
        // Room below the first one that came, for those that it overtook.
        let near = self.highest.unwrap_or(ROUND + u64::from(number));
        let ahead = number.wrapping_sub(near as u32) as i32;
        let number = near.saturating_add_signed(ahead.into());
        self.highest = Some(near.max(number));
        Some(number + 1)
    }
}
