//! Every table computes what the contract says: against definitions in f64 and plain integers
//! that share no code with the kernels.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;
use simd::{
    BATCH, BatchBounds, BatchFactors, BoundParams, Isa, Kernels, RawType, ex_bytes, ex_pack,
    ex_unpack, get_code, pack_codes, set_code,
};

/// A sum of `n` floats with terms of total size `mass` is off by at most this.
fn tolerance(n: usize, mass: f64) -> f64 {
    (n as f64 / 16.0 + 8.0) * f64::from(f32::EPSILON) * mass + f64::from(f32::MIN_POSITIVE)
}

fn assert_close(got: f32, terms: impl Iterator<Item = f64>, what: &str) {
    let terms: Vec<f64> = terms.collect();
    let (sum, mass) = (terms.iter().sum::<f64>(), terms.iter().map(|t| t.abs()).sum());
    let off = (f64::from(got) - sum).abs();
    assert!(off <= tolerance(terms.len(), mass), "{what}: {got} for {sum}");
}

/// The float whose value a half-precision number is defined to have.
fn half_value(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    match exponent {
        0 => sign * fraction * 2.0f64.powi(-14),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1.0 + fraction) * 2.0f64.powi(exponent - 15),
    }
}

fn raw_values(ty: RawType, x: &[u8]) -> Vec<f64> {
    match ty {
        RawType::F32 => {
            x.chunks(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
        }
        RawType::F16 => {
            x.chunks(2).map(|b| half_value(u16::from_le_bytes(b.try_into().unwrap()))).collect()
        }
        RawType::U8 => x.iter().map(|&b| f64::from(b)).collect(),
        RawType::I8 => x.iter().map(|&b| f64::from(b as i8)).collect(),
    }
}

#[test]
fn every_half_has_its_defined_value() {
    for bits in 0..=u16::MAX {
        for kernels in Kernels::available() {
            let got = f64::from(kernels.dot_raw(RawType::F16, &[1.0], &bits.to_le_bytes()));
            let value = half_value(bits);
            assert!(got == value || got.is_nan() && value.is_nan(), "{bits:#06x} {got} {value}");
        }
    }
}

#[test]
fn fwht_equals_its_matrix() {
    for n in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] {
        let x: Vec<f32> = (0..n).map(|i| ((i * 37 % 101) as f32).sin()).collect();
        for kernels in Kernels::available() {
            let mut y = x.clone();
            kernels.fwht(&mut y);
            for (i, &y) in y.iter().enumerate() {
                let sign = |j: usize| if (i & j).count_ones() % 2 == 1 { -1.0 } else { 1.0 };
                let terms = x.iter().enumerate().map(|(j, &x)| sign(j) * f64::from(x));
                assert_close(y, terms, &format!("{} n {n} row {i}", kernels.isa()));
            }
        }
    }
}

#[test]
fn sums_run_in_the_documented_order() {
    // 2^24 in lane 3 swallows the ones that follow it there, and no others.
    let mut a = vec![1.0f32; 16 * 5];
    a[3] = 16_777_216.0;
    for kernels in Kernels::available() {
        // Lanes 0 to 15 hold 5, lane 3 holds 2^24; the tree adds 5 to it (rounds to even: +4),
        // then sums of 10, 20 and 40 (each even).
        let expected = 16_777_220.0 + 10.0 + 20.0 + 40.0;
        assert_eq!(kernels.dot(&a, &vec![1.0; a.len()]), expected, "{}", kernels.isa());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn distances_equal_their_definition(q in vec(-100.0f32..100.0, 0..150), seed in any::<u32>()) {
        for ty in [RawType::F32, RawType::F16, RawType::U8, RawType::I8] {
            let words = (0..q.len() as u32).map(|i| seed.wrapping_add(i).wrapping_mul(0x9e37_79b9));
            let x: Vec<u8> = match ty {
                RawType::F32 => words.flat_map(|w| (w as f32 / 1e8).to_le_bytes()).collect(),
                RawType::F16 => words.flat_map(|w| (w as u16 & 0xbfff).to_le_bytes()).collect(),
                RawType::U8 | RawType::I8 => words.map(|w| (w >> 24) as u8).collect(),
            };
            let pairs = || q.iter().map(|&q| f64::from(q)).zip(raw_values(ty, &x));
            for kernels in Kernels::available() {
                let what = format!("{} {ty:?}", kernels.isa());
                assert_close(kernels.dot_raw(ty, &q, &x), pairs().map(|(q, x)| q * x), &what);
                // The difference is rounded before it is squared, which doubles one epsilon.
                let l2 = f64::from(kernels.l2_raw(ty, &q, &x));
                let expected: f64 = pairs().map(|(q, x)| (q - x) * (q - x)).sum();
                prop_assert!((l2 - expected).abs() <= 2.0 * tolerance(q.len(), expected), "{what}");
            }
        }
    }

    #[test]
    fn code_products_equal_their_definition(
        q in vec(-10.0f32..10.0, 320),
        levels in vec(any::<u8>(), 320),
        blocks in 0usize..=5,
    ) {
        let (q, levels) = (&q[..64 * blocks], &levels[..64 * blocks]);
        for width in 1..=8 {
            let levels: Vec<u8> = levels.iter().map(|l| l >> (8 - width)).collect();
            let mut code = vec![0xaa; ex_bytes(width, levels.len())];
            ex_pack(width, &levels, &mut code);
            let mut back = vec![0xaa; levels.len()];
            ex_unpack(width, &code, &mut back);
            prop_assert_eq!(&back, &levels);
            for kernels in Kernels::available() {
                let terms = q.iter().zip(&levels).map(|(&q, &l)| f64::from(q) * f64::from(l));
                let what = format!("{} width {width}", kernels.isa());
                assert_close(kernels.ex_dot(width, q, &code), terms, &what);
            }
        }
        let bits: Vec<u8> = levels.iter().take(q.len() / 8).copied().collect();
        for kernels in Kernels::available() {
            let positive = |j: usize| bits[j / 8] & 1 << (j % 8) != 0;
            let signed = |(j, &q): (usize, &f32)| f64::from(if positive(j) { q } else { -q });
            let what = format!("{} signs", kernels.isa());
            assert_close(kernels.sign_dot(q, &bits), q.iter().enumerate().map(signed), &what);
        }
    }

    #[test]
    fn code_score_equals_its_definition(
        a in vec(0.0f32..4.0, 0..150),
        t in 0.0f32..80.0,
        bits in 0i32..8,
    ) {
        let half = 2.0f32.powi(bits);
        // The product is rounded to f32 before floor, here as in the kernel.
        let v = |a: f32| f64::from((t * a).floor()).min(f64::from(half) - 1.0) + 0.5;
        for kernels in Kernels::available() {
            let (product, square) = kernels.code_score(&a, t, half);
            let what = format!("{} t {t}", kernels.isa());
            assert_close(product, a.iter().map(|&a| v(a) * f64::from(a)), &what);
            assert_close(square, a.iter().map(|&a| v(a) * v(a)), &what);
        }
    }

    #[test]
    fn scan_sums_the_entries_each_code_selects(
        blocks in 1usize..=12,
        filled in 0usize..=BATCH,
        bytes in vec(any::<u8>(), BATCH * 12 * 8),
        entries in vec(any::<u16>(), 12 * 16 * 16),
    ) {
        let m = 64 * blocks;
        let rows: Vec<&[u8]> = bytes.chunks(m / 8).take(filled).collect();
        let mut codes = vec![0xff; 4 * m];
        pack_codes(m, |slot| rows.get(slot).copied(), &mut codes);

        let entries = &entries[..m / 4 * 16];
        let lut8: Vec<u8> = entries.iter().map(|e| *e as u8).collect();
        let mut lut16 = vec![0; 2 * entries.len()];
        simd::pack_lut16(entries, &mut lut16);

        for kernels in Kernels::available() {
            let (mut sums8, mut sums16) = ([1; BATCH], [1; BATCH]);
            kernels.scan8(&codes, &lut8, &mut sums8);
            kernels.scan16(&codes, &lut16, &mut sums16);
            for slot in 0..BATCH {
                let (mut expected8, mut expected16) = (0, 0);
                for g in 0..m / 4 {
                    let bit = |t: usize| {
                        let j = 4 * g + t;
                        rows.get(slot).is_some_and(|code| code[j / 8] & 1 << (j % 8) != 0)
                    };
                    let nibble = (0..4).filter(|&t| bit(t)).map(|t| 1 << t).sum::<usize>();
                    expected8 += u32::from(lut8[16 * g + nibble]);
                    expected16 += u32::from(entries[16 * g + nibble]);
                }
                prop_assert_eq!(sums8[slot], expected8, "{} scan8 {}", kernels.isa(), slot);
                prop_assert_eq!(sums16[slot], expected16, "{} scan16 {}", kernels.isa(), slot);
            }
        }
    }

    #[test]
    fn bounds_equal_their_definition(
        sums in vec(0u32..1_000_000, BATCH),
        factors in vec(-2.0f32..2.0, 3 * BATCH),
        list_term in -5.0f32..5.0,
        eps_y in 0.0f32..3.0,
        threshold in -50.0f32..50.0,
        seed_threshold in -50.0f32..50.0,
    ) {
        let sums: [u32; BATCH] = sums.try_into().unwrap();
        let factors = BatchFactors::view(&factors)[0];
        let params = BoundParams {
            delta: 1e-4, offset: -30.0, list_term, eps_y, table_error: 0.25, slack: 1e-3,
            threshold, seed_threshold,
        };
        for kernels in Kernels::available() {
            let mut out = BatchBounds::default();
            kernels.bounds(&sums, &factors, &params, &mut out);
            for (i, &sum) in sums.iter().enumerate() {
                let s = f64::from(params.delta) * f64::from(sum) + f64::from(params.offset);
                let rescale = f64::from(factors.rescale[i]);
                let base = f64::from(factors.add[i]) + f64::from(list_term) + rescale * s;
                let error = f64::from(factors.error[i]) * f64::from(eps_y);
                let half = error + rescale.abs() * f64::from(params.table_error)
                    + f64::from(params.slack);
                let (lower, upper) = (base - half, base + half);
                let near = |x: f64, limit: f32| (x - f64::from(limit)).abs() < 1e-3;
                let (kept, seed) = (out.survivors >> i & 1 == 1, out.seeds >> i & 1 == 1);
                let kept_right = kept == (lower <= f64::from(threshold));
                let seed_right = seed == (upper < f64::from(seed_threshold));
                prop_assert!(kept_right || near(lower, threshold), "{} {i}", kernels.isa());
                prop_assert!(seed_right || near(upper, seed_threshold), "{} {i}", kernels.isa());
                if kept || seed {
                    prop_assert!((f64::from(out.estimate_sum[i]) - s).abs() < 1e-3);
                    prop_assert!((f64::from(out.lower[i]) - lower).abs() < 1e-3);
                    prop_assert!((f64::from(out.upper[i]) - upper).abs() < 1e-3);
                }
            }
        }
    }

    #[test]
    fn packed_codes_come_back(
        blocks in 1usize..=12,
        slots in vec(any::<bool>(), BATCH),
        bytes in vec(any::<u8>(), BATCH * 96),
    ) {
        let m = 64 * blocks;
        let row = |slot: usize| slots[slot].then(|| &bytes[slot * m / 8..][..m / 8]);
        let mut codes = vec![0x55; 4 * m];
        pack_codes(m, row, &mut codes);

        let mut one_by_one = vec![0; 4 * m];
        for slot in (0..BATCH).rev() {
            if let Some(code) = row(slot) {
                set_code(&mut one_by_one, m, slot, code);
            }
        }
        prop_assert_eq!(&codes, &one_by_one);
        for slot in 0..BATCH {
            let mut code = vec![0x55; m / 8];
            get_code(&codes, m, slot, &mut code);
            prop_assert_eq!(code, row(slot).map_or(vec![0; m / 8], <[u8]>::to_vec));
        }
    }
}

#[test]
fn a_bound_equal_to_its_threshold_survives_and_does_not_seed() {
    let factors = BatchFactors { add: [2.0; BATCH], ..BatchFactors::default() };
    let params = BoundParams { threshold: 2.0, seed_threshold: 2.0, ..BoundParams::default() };
    for kernels in Kernels::available() {
        let mut out = BatchBounds::default();
        kernels.bounds(&[0; BATCH], &factors, &params, &mut out);
        assert_eq!((out.survivors, out.seeds), (u32::MAX, 0), "{}", kernels.isa());
    }
}

#[test]
#[should_panic(expected = "more than 65536 dimensions")]
fn a_batch_whose_sums_could_overflow_is_refused() {
    let bytes = vec![0; 4 * (simd::MAX_DIMS + 64)];
    Kernels::best().scan8(&bytes, &bytes, &mut [0; BATCH]);
}

#[test]
#[should_panic(expected = "lookup table of the wrong length")]
fn a_short_lookup_table_is_refused() {
    Kernels::best().scan16(&[0; 256], &[0; 256], &mut [0; BATCH]);
}

#[test]
#[should_panic(expected = "lengths differ")]
fn vectors_of_two_lengths_are_refused() {
    Kernels::best().dot(&[0.0; 3], &[0.0; 4]);
}

#[test]
fn factors_are_a_view_of_floats() {
    let mut floats: Vec<f32> = (0..200).map(|i| i as f32).collect();
    let batches = BatchFactors::view(&floats);
    assert_eq!(batches.len(), 2);
    assert_eq!(
        (batches[1].add[0], batches[1].rescale[0], batches[1].error[31]),
        (96.0, 128.0, 191.0)
    );
    BatchFactors::view_mut(&mut floats)[0].rescale[1] = -1.0;
    assert_eq!(floats[33], -1.0);
    assert_eq!(size_of::<BatchFactors>(), 384);
}

#[test]
fn names_of_instruction_sets_go_both_ways() {
    for isa in [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512] {
        assert_eq!(isa.to_string().parse(), Ok(isa));
    }
    let message = "sse9".parse::<Isa>().unwrap_err().to_string();
    assert!(message.contains("\"sse9\"") && message.contains("avx512"), "{message}");
    assert_eq!(Kernels::available()[0].isa(), Isa::Scalar);
    assert!(Kernels::available().is_sorted_by_key(|kernels| kernels.isa()));
}
