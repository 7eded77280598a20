//! From values to places along an axis, and the round numbers that label it.

/// Labels an axis has about this many of.
const LABELS: f64 = 5.0;

/// An axis: its ends and the values that are labelled.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    log: bool,
    low: f64,
    high: f64,
    pub(super) ticks: Vec<f64>,
    step: f64,
}

impl Scale {
    /// An axis that holds all of `values`, its ends at labels.
    pub(super) fn over(values: impl Iterator<Item = f64> + Clone, log: bool) -> Self {
        let shown = values.filter(|&v| shows(v, log));
        let low = shown.clone().fold(f64::INFINITY, f64::min);
        let high = shown.fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        if log { Self::log(low, high) } else { Self::linear(low, high) }
    }

    /// An axis from zero to exactly `end`.
    pub(super) fn until(end: f64) -> Self {
        let scale = Self::linear(0.0, end);
        let ticks = scale.ticks.into_iter().filter(|&t| t <= end).collect();
        Self { ticks, high: end.max(f64::MIN_POSITIVE), ..scale }
    }

    fn linear(low: f64, high: f64) -> Self {
        let (low, high) = if low < high { (low, high) } else { apart(low) };
        let rough = (high - low) / LABELS;
        let unit = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|times| times * unit)
            .find(|&step| step >= rough * 0.999)
            .unwrap_or(10.0 * unit);
        let first = (low / step + 1e-9).floor();
        let last = (high / step - 1e-9).ceil();
        let ticks: Vec<f64> =
            (0..=(last - first) as usize).map(|i| (first + i as f64) * step).collect();
        Self { log: false, low: first * step, high: last * step, ticks, step }
    }

    /// Labels at powers of ten, and at 2 and 5 times them where there are few.
    fn log(low: f64, high: f64) -> Self {
        let decades = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let times: &[f64] = if decades.1 - decades.0 > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let all: Vec<f64> = (decades.0..=decades.1.max(decades.0 + 1))
            .flat_map(|power| times.iter().map(move |t| t * 10f64.powi(power)))
            .collect();
        let first = all.iter().rposition(|&t| t <= low * (1.0 + 1e-9)).unwrap_or(0);
        let last = all.iter().position(|&t| t >= high * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
        let last = last.max(first + 1).min(all.len() - 1);
        let ticks = all[first..=last].to_vec();
        Self { log: true, low: ticks[0], high: ticks[ticks.len() - 1], ticks, step: 0.0 }
    }

    /// Where `value` lies, 0 at the low end and 1 at the high one.
    pub(super) fn share(&self, value: f64) -> f64 {
        if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// Whether a value has a place on this axis.
    pub(super) fn shows(&self, value: f64) -> bool {
        shows(value, self.log)
    }

    /// A label: as many digits as tell it from its neighbours.
    pub(super) fn label(&self, tick: f64) -> String {
        let (divisor, suffix) = match self.high.abs().max(self.low.abs()) {
            _ if self.log && tick < 1e4 => (1.0, ""),
            largest if largest < 1e4 => (1.0, ""),
            _ if tick == 0.0 => (1.0, ""),
            _ if tick >= 1e9 => (1e9, "G"),
            _ if tick >= 1e6 => (1e6, "M"),
            _ => (1e3, "k"),
        };
        let step = if self.log { tick } else { self.step } / divisor;
        let digits = (-(step.abs() * 1.000_001).log10().floor()).clamp(0.0, 9.0) as usize;
        let digits = if tick == 0.0 && divisor == 1.0 && step >= 1.0 { 0 } else { digits };
        format!("{:.digits$}{suffix}", tick / divisor)
    }
}

fn shows(value: f64, log: bool) -> bool {
    value.is_finite() && (!log || value > 0.0)
}

/// Room around a lone value.
fn apart(value: f64) -> (f64, f64) {
    let room = if value == 0.0 { 1.0 } else { value.abs() / 2.0 };
    (value - room, value + room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], log: bool) -> Vec<String> {
        let scale = Scale::over(values.iter().copied(), log);
        scale.ticks.iter().map(|&tick| scale.label(tick)).collect()
    }

    #[test]
    fn labels_are_round_and_enclose_the_values() {
        assert_eq!(labels(&[0.823, 0.991], false), ["0.80", "0.85", "0.90", "0.95", "1.00"]);
        assert_eq!(labels(&[0.0, 1.0], false), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&[0.0, 23_000.0], false), ["0", "5k", "10k", "15k", "20k", "25k"]);
        assert_eq!(labels(&[130.0, 900.0], true), ["100", "200", "500", "1000"]);
        assert_eq!(labels(&[3.0, 2e6], true).last().map(String::as_str), Some("10M"));
    }

    #[test]
    fn places_run_from_0_to_1_on_both_spreads() {
        for log in [false, true] {
            let values = [7.0, 12.0, 80.0];
            let scale = Scale::over(values.into_iter(), log);
            let places: Vec<f64> = values.iter().map(|&v| scale.share(v)).collect();
            assert!(places.is_sorted() && places[0] >= 0.0 && places[2] <= 1.0, "{places:?}");
        }
    }

    #[test]
    fn lone_empty_and_unfit_values_still_make_an_axis() {
        for values in [&[][..], &[5.0], &[0.0], &[f64::NAN, -1.0], &[f64::INFINITY]] {
            for log in [false, true] {
                let scale = Scale::over(values.iter().copied(), log);
                assert!(scale.ticks.len() >= 2 && scale.low < scale.high, "{values:?} {log}");
            }
        }
    }
}
