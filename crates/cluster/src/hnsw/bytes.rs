//! The graph as bytes, little endian.
//!
//! ```text
//! 0    8  magic "RQGRAPH1"
//! 8    4  nodes n
//! 12   4  entry, below n
//! 16   4  upper layers U
//! 20   4  links per node on layer 0 (32)
//! 24   4  links per node above (16)
//! 28   4  metric: 0 L2, 1 inner product
//! 32  4U  members of each upper layer
//!         links of layer 0: n * 32 x u32
//!         per upper layer: members x u32 (ascending), then members * 16 x u32 links
//! ```
//!
//! A link is a node below n; unused ones are 0xFFFF_FFFF and follow the used ones. Nothing is
//! allocated before the counts add up to the number of bytes.

use super::{BASE_LINKS, GraphMetric, Hnsw, LINKS, Layer, NONE};
use crate::ClusterError;

const MAGIC: u64 = u64::from_le_bytes(*b"RQGRAPH1");
const HEADER: usize = 32;
const MAX_UPPER_LAYERS: u32 = 64;

impl Hnsw {
    /// The graph as bytes; [`Hnsw::from_bytes`] reads them back.
    pub fn to_bytes(&self) -> Vec<u8> {
        let upper = &self.layers[1..];
        let mut words = vec![
            self.nodes as u32,
            self.entry,
            upper.len() as u32,
            BASE_LINKS as u32,
            LINKS as u32,
            u32::from(self.metric == GraphMetric::Ip),
        ];
        words.extend(upper.iter().map(|l| l.members.as_ref().map_or(0, Vec::len) as u32));
        words.extend(&self.layers[0].links);
        for layer in upper {
            words.extend(layer.members.iter().flatten());
            words.extend(&layer.links);
        }
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        bytes
    }

    /// Reads a graph and checks everything that a search relies on.
    ///
    /// # Errors
    /// When a count, a node or the length is not as the layout says.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ClusterError> {
        let mut reader = Reader { bytes, at: 0 };
        let header = u64::from(reader.u32("magic")?) | u64::from(reader.u32("magic")?) << 32;
        if header != MAGIC {
            return Err(wrong(0, "magic", header, format!("{MAGIC:#x}")));
        }
        let nodes = reader.u32_in("nodes", 1..=NONE - 1)?;
        let entry = reader.u32_in("entry", 0..=nodes - 1)?;
        let upper = reader.u32_in("upper layers", 0..=MAX_UPPER_LAYERS)?;
        reader.u32_in("links on layer 0", BASE_LINKS as u32..=BASE_LINKS as u32)?;
        reader.u32_in("links above layer 0", LINKS as u32..=LINKS as u32)?;
        let metric = match reader.u32_in("metric", 0..=1)? {
            0 => GraphMetric::L2,
            _ => GraphMetric::Ip,
        };
        let mut counts = Vec::with_capacity(upper as usize);
        for _ in 0..upper {
            counts.push(reader.u32_in("members of a layer", 1..=nodes)?);
        }
        check_length(bytes, nodes, &counts)?;

        let links = reader.links("layer 0 link", nodes, nodes, BASE_LINKS)?;
        let mut layers = vec![Layer { members: None, stride: BASE_LINKS, links }];
        for count in counts {
            let members = reader.members(count, nodes)?;
            let links = reader.links("upper layer link", nodes, count, LINKS)?;
            layers.push(Layer { members: Some(members), stride: LINKS, links });
        }
        Ok(Self { metric, nodes: nodes as usize, entry, layers })
    }
}

/// The length that the counts ask for must be the length there is.
fn check_length(bytes: &[u8], nodes: u32, counts: &[u32]) -> Result<(), ClusterError> {
    let upper: u64 = counts.iter().map(|&c| u64::from(c) * (1 + LINKS as u64)).sum();
    let words = counts.len() as u64 + u64::from(nodes) * BASE_LINKS as u64 + upper;
    let expected = HEADER as u64 + 4 * words;
    if bytes.len() as u64 != expected {
        let expected = format!("{expected} for {nodes} nodes and upper layers of {counts:?}");
        return Err(wrong(bytes.len(), "length", bytes.len() as u64, expected));
    }
    Ok(())
}

fn wrong(offset: usize, what: &'static str, found: u64, expected: String) -> ClusterError {
    ClusterError::Graph { offset, what, found, expected }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn u32(&mut self, what: &'static str) -> Result<u32, ClusterError> {
        let Some(word) = self.bytes[self.at..].first_chunk::<4>() else {
            let expected = format!("at least {} bytes", self.at + 4);
            return Err(wrong(self.at, what, self.bytes.len() as u64, expected));
        };
        self.at += 4;
        Ok(u32::from_le_bytes(*word))
    }

    fn u32_in(
        &mut self,
        what: &'static str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, ClusterError> {
        let offset = self.at;
        let value = self.u32(what)?;
        if range.contains(&value) {
            return Ok(value);
        }
        let expected = format!("{} to {}", range.start(), range.end());
        Err(wrong(offset, what, value.into(), expected))
    }

    fn members(&mut self, count: u32, nodes: u32) -> Result<Vec<u32>, ClusterError> {
        let mut members: Vec<u32> = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let least = members.last().map_or(0, |m| m + 1);
            members.push(self.u32_in("member of a layer", least..=nodes - 1)?);
        }
        Ok(members)
    }

    fn links(
        &mut self,
        what: &'static str,
        nodes: u32,
        count: u32,
        stride: usize,
    ) -> Result<Vec<u32>, ClusterError> {
        let mut links = Vec::with_capacity(count as usize * stride);
        for _ in 0..count {
            let mut ended = false;
            for _ in 0..stride {
                let offset = self.at;
                let link = self.u32(what)?;
                ended |= link == NONE;
                if link != NONE && (ended || link >= nodes) {
                    let expected = format!("below {nodes}, before the unused ones");
                    return Err(wrong(offset, what, link.into(), expected));
                }
                links.push(link);
            }
        }
        Ok(links)
    }
}
