//! Every instruction set of this CPU returns the bits of the scalar table.
//!
//! `RABITQ_SSD_REQUIRE_ISA=avx512` (or another name) makes it an error when that table is missing,
//! so that a machine without it cannot pass by testing nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;
use simd::{
    BATCH, BatchBounds, BatchFactors, BoundParams, Isa, Kernels, RawType, ex_bytes, pack_lut16,
};

const TYPES: [RawType; 4] = [RawType::F32, RawType::F16, RawType::U8, RawType::I8];

fn scalar() -> &'static Kernels {
    Kernels::for_isa(Isa::Scalar).expect("scalar is always there")
}

fn others() -> impl Iterator<Item = &'static Kernels> {
    Kernels::available().into_iter().filter(|kernels| kernels.isa() != Isa::Scalar)
}

/// Bit for bit, except that one NaN is as good as another.
fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn all_same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same(a, b))
}

/// Mostly ordinary floats, now and then one from the edges of the format.
fn float() -> impl Strategy<Value = f32> {
    prop_oneof![20 => -10.0f32..10.0, 1 => any::<f32>()]
}

fn dims(blocks: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = usize> {
    vec(Just(64), blocks).prop_map(|blocks| blocks.len() * 64)
}

#[test]
fn required_instruction_set_is_available() {
    if let Ok(name) = std::env::var("RABITQ_SSD_REQUIRE_ISA") {
        let isa: Isa = name.parse().unwrap();
        assert!(Kernels::for_isa(isa).is_some(), "{isa} is required but this CPU lacks it");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn fwht_equals_scalar(log in 0u32..=11, pool in vec(float(), 2048), skip in 0usize..4) {
        let from = &pool[..1 << log];
        let mut expected = from.to_vec();
        scalar().fwht(&mut expected);
        for kernels in others() {
            let mut buffer = vec![0.0; skip];
            buffer.extend_from_slice(from);
            kernels.fwht(&mut buffer[skip..]);
            prop_assert!(all_same(&buffer[skip..], &expected), "{}", kernels.isa());
        }
    }

    #[test]
    fn float_distances_equal_scalar(pairs in vec((float(), float()), 0..200)) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        for kernels in others() {
            prop_assert!(same(kernels.dot(&a, &b), scalar().dot(&a, &b)), "{}", kernels.isa());
            prop_assert!(same(kernels.l2(&a, &b), scalar().l2(&a, &b)), "{}", kernels.isa());
        }
    }

    #[test]
    fn raw_distances_equal_scalar_at_any_alignment(
        q in vec(float(), 0..200),
        bytes in vec(any::<u8>(), 803),
        skip in 0usize..3,
    ) {
        for ty in TYPES {
            let x = &bytes[skip..skip + q.len() * ty.size()];
            for kernels in others() {
                let (dot, l2) = (kernels.dot_raw(ty, &q, x), kernels.l2_raw(ty, &q, x));
                prop_assert!(same(dot, scalar().dot_raw(ty, &q, x)), "{} {ty:?}", kernels.isa());
                prop_assert!(same(l2, scalar().l2_raw(ty, &q, x)), "{} {ty:?}", kernels.isa());
            }
        }
    }

    #[test]
    fn extra_code_products_equal_scalar(
        dims in dims(0..=16),
        pool in vec(float(), 1024),
        bytes in vec(any::<u8>(), 1025),
        skip in 0usize..2,
    ) {
        let q = &pool[..dims];
        for width in 1..=8 {
            let code = &bytes[skip..skip + ex_bytes(width, dims)];
            let expected = scalar().ex_dot(width, q, code);
            for kernels in others() {
                prop_assert!(
                    same(kernels.ex_dot(width, q, code), expected),
                    "{} width {width}", kernels.isa()
                );
            }
        }
        let bits = &bytes[skip..skip + dims / 8];
        for kernels in others() {
            let (got, expected) = (kernels.sign_dot(q, bits), scalar().sign_dot(q, bits));
            prop_assert!(same(got, expected), "{}", kernels.isa());
        }
    }

    #[test]
    fn code_score_equals_scalar(
        a in vec(prop_oneof![20 => 0.0f32..4.0, 1 => any::<f32>().prop_map(f32::abs)], 0..200),
        t in 0.0f32..100.0,
        log_half in 0i32..=16,
    ) {
        let half = 2.0f32.powi(log_half);
        let (product, square) = scalar().code_score(&a, t, half);
        for kernels in others() {
            let got = kernels.code_score(&a, t, half);
            prop_assert!(same(got.0, product) && same(got.1, square), "{}", kernels.isa());
        }
    }

    #[test]
    fn scans_equal_scalar(
        dims in dims(0..=40),
        seed in any::<u64>(),
        skip in 0usize..2,
    ) {
        let bytes = noise(seed, skip + 4 * dims);
        let codes = &bytes[skip..];
        let lut8 = noise(!seed, 4 * dims);
        let lut16 = noise(seed ^ 1, 8 * dims);
        assert_scans_equal(codes, &lut8, &lut16);
    }

    #[test]
    fn bounds_equal_scalar_where_a_mask_says_so(
        sums in vec(prop_oneof![0u32..100_000, 0u32..1 << 31], BATCH),
        floats in vec(prop_oneof![8 => float(), 1 => Just(f32::NAN)], 3 * BATCH),
        params in vec(float(), 8),
    ) {
        let sums: [u32; BATCH] = sums.try_into().unwrap();
        let params = BoundParams {
            delta: params[0],
            offset: params[1],
            list_term: params[2],
            eps_y: params[3].abs(),
            table_error: params[4].abs(),
            slack: params[5].abs(),
            threshold: params[6] * 10.0,
            seed_threshold: params[7] * 10.0,
        };
        assert_bounds_equal(&sums, &BatchFactors::view(&floats)[0], &params);
    }
}

/// Scans whose sums come close to what their counters hold.
#[test]
fn largest_tables_do_not_overflow() {
    for m in [64, 1024, 2048, 4096, 8192, 65536] {
        let ones = vec![0xff; 8 * m];
        assert_scans_equal(&ones[..4 * m], &ones[..4 * m], &ones);
        for kernels in Kernels::available() {
            let mut sums = [0; BATCH];
            kernels.scan8(&ones[..4 * m], &ones[..4 * m], &mut sums);
            assert_eq!(sums, [m as u32 / 4 * 255; BATCH], "{} scan8 m {m}", kernels.isa());
            kernels.scan16(&ones[..4 * m], &ones, &mut sums);
            assert_eq!(sums, [m as u32 / 4 * 65535; BATCH], "{} scan16 m {m}", kernels.isa());
        }
    }
}

#[test]
fn nan_factors_survive_and_never_seed() {
    let mut factors = BatchFactors { add: [1e9; BATCH], ..BatchFactors::default() };
    factors.add[3] = f32::NAN;
    factors.rescale[17] = f32::NAN;
    factors.error[31] = f32::NAN;
    let params = BoundParams { threshold: 10.0, seed_threshold: 10.0, ..BoundParams::default() };
    for kernels in Kernels::available() {
        let mut out = BatchBounds::default();
        kernels.bounds(&[1; BATCH], &factors, &params, &mut out);
        assert_eq!(out.survivors, 1 << 3 | 1 << 17 | 1 << 31, "{}", kernels.isa());
        assert_eq!(out.seeds, 0, "{}", kernels.isa());
    }
}

#[test]
fn every_half_widens_alike() {
    for half in 0..=u16::MAX {
        let x = half.to_le_bytes().repeat(16);
        let expected = scalar().dot_raw(RawType::F16, &[1.0; 16], &x);
        for kernels in others() {
            let got = kernels.dot_raw(RawType::F16, &[1.0; 16], &x);
            assert!(same(got, expected), "{} {half:#06x}", kernels.isa());
        }
    }
}

#[test]
fn a_tail_leaves_the_sign_of_zero_in_other_lanes() {
    // Every product underflows to -0, so the sum is -0 unless a padded lane had +0 added to it.
    for len in 17..32 {
        let (a, b) = (vec![1e-30; len], vec![-1e-30; len]);
        for kernels in Kernels::available() {
            assert_eq!(kernels.dot(&a, &b).to_bits(), (-0.0f32).to_bits(), "{}", kernels.isa());
        }
    }
}

fn assert_scans_equal(codes: &[u8], lut8: &[u8], lut16: &[u8]) {
    let (mut expected8, mut expected16) = ([7; BATCH], [7; BATCH]);
    scalar().scan8(codes, lut8, &mut expected8);
    scalar().scan16(codes, lut16, &mut expected16);
    for kernels in others() {
        let mut sums = [9; BATCH];
        kernels.scan8(codes, lut8, &mut sums);
        assert_eq!(sums, expected8, "{} scan8", kernels.isa());
        kernels.scan16(codes, lut16, &mut sums);
        assert_eq!(sums, expected16, "{} scan16", kernels.isa());
    }
}

fn assert_bounds_equal(sums: &[u32; BATCH], factors: &BatchFactors, params: &BoundParams) {
    let mut expected = BatchBounds::default();
    scalar().bounds(sums, factors, params, &mut expected);
    for kernels in others() {
        let mut out = BatchBounds::default();
        kernels.bounds(sums, factors, params, &mut out);
        assert_eq!(out.survivors, expected.survivors, "{} survivors", kernels.isa());
        assert_eq!(out.seeds, expected.seeds, "{} seeds", kernels.isa());
        for i in (0..BATCH).filter(|i| (out.survivors | out.seeds) >> i & 1 == 1) {
            let pairs = [
                (out.estimate_sum[i], expected.estimate_sum[i]),
                (out.lower[i], expected.lower[i]),
                (out.upper[i], expected.upper[i]),
            ];
            assert!(pairs.iter().all(|&(a, b)| same(a, b)), "{} {i} {pairs:?}", kernels.isa());
        }
    }
}

/// Bytes without a pattern (splitmix64): proptest would shrink long byte vectors for minutes.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let word = |i: u64| {
        let z = seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    (1..=len.div_ceil(8) as u64).flat_map(|i| word(i).to_le_bytes()).take(len).collect()
}

#[test]
fn packed_tables_scan_to_their_own_entries() {
    let lut: Vec<u16> = (0..64 / 4 * 16).map(|i| i * 251).collect();
    let mut packed = vec![0; 2 * lut.len()];
    pack_lut16(&lut, &mut packed);
    let codes = noise(5, 256);
    for kernels in Kernels::available() {
        let mut sums = [0; BATCH];
        kernels.scan16(&codes, &packed, &mut sums);
        for (i, &sum) in sums.iter().enumerate() {
            let entry = |g: usize| {
                let pair = codes[16 * g + i % 16];
                u32::from(lut[16 * g + usize::from(if i < 16 { pair & 15 } else { pair >> 4 })])
            };
            assert_eq!(sum, (0..16).map(entry).sum::<u32>(), "{} code {i}", kernels.isa());
        }
    }
}
