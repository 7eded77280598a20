//! rabitq-ssd
