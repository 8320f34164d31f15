//! The order statistics of a few measurements.

use serde::Serialize;

/// Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Stats {
    runs: usize,
    min_ms: f64,
    p50_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

impl Stats {
    /// Of at least one measurement, in nanoseconds.
    pub(super) fn of(mut times_ns: Vec<u64>) -> Stats {
        times_ns.sort_unstable();
        // Nearest rank: of 30, p99 is the largest.
        let at = |percent: usize| {
            let rank = (times_ns.len() * percent).div_ceil(100).max(1);
            ms(times_ns[rank - 1])
        };
        Stats {
            runs: times_ns.len(),
            min_ms: ms(times_ns[0]),
            p50_ms: at(50),
            p90_ms: at(90),
            p99_ms: at(99),
            max_ms: at(100),
        }
    }

    /// A heading and a row for a table.
    pub(super) fn table(&self) -> (Vec<&'static str>, Vec<String>) {
        let heading = vec!["RUNS", "MIN ms", "P50 ms", "P90 ms", "P99 ms", "MAX ms"];
        let times = [self.min_ms, self.p50_ms, self.p90_ms, self.p99_ms, self.max_ms];
        let row = std::iter::once(self.runs.to_string());
        (heading, row.chain(times.map(|time| format!("{time:.1}"))).collect())
    }
}

/// Rounded to a microsecond, which is finer than anything here.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn ms(ns: u64) -> f64 {
    (ns as f64 / 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let stats = Stats::of((1..=30).rev().map(|ms| ms * 1_000_000).collect());
        assert_eq!((stats.min_ms, stats.p50_ms, stats.p90_ms), (1.0, 15.0, 27.0));
        assert_eq!((stats.p99_ms, stats.max_ms, stats.runs), (30.0, 30.0, 30));
        assert_eq!(Stats::of(vec![7_000_000]).p50_ms, 7.0);
    }
}
